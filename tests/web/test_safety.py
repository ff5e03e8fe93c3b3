"""Texts of models, tools and files do nothing in the page but be read.

That no policy was violated is checked after every test (tests.web.browser).
"""

import re
from typing import Final

from playwright.async_api import expect

from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.web.browser import built_page
from tests.web.screen import Screen

HOSTILE: Final = """<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>

[click](javascript:window.hacked=3) [data](data:text/html,<script>window.hacked=4</script>)
[https://good.example](https://evil.example) ![pixel](https://evil.example/track.png)
<a href="javascript:window.hacked=5">raw</a> \u202etxt.exe\u202c a\u200bb

<style>body { display: none }</style><iframe src="https://evil.example"></iframe>
"""


async def test_hostile_text_is_shown_and_does_nothing(
    screen: Screen, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    asked: list[str] = []
    screen.page.on("request", lambda request: asked.append(request.url))
    (folders.project / "hostile.txt").write_text(HOSTILE + "\x1b[31m" + "x" * 100_000)
    provider.then(
        calls(Call("read", {"path": "hostile.txt"}), saying=HOSTILE),
        text("A" * 120_000 + "\n\n" + "> " * 500 + "deep\n\n" + "- " * 200 + "deeper"),
    )
    session = await screen.api.create(title="<b>bold</b> \u202egnp.exe")
    await screen.open(session)
    await screen.see("<b>bold</b>")
    await screen.say(HOSTILE)
    await screen.see("deeper")
    await screen.page.locator(".scroller").evaluate("(list) => { list.scrollTop = 0 }")
    await screen.page.locator(".tool button").first.click()
    assert await screen.page.evaluate("window.hacked") is None
    for tag in ("script", "iframe", "img", "style"):
        assert await screen.page.locator(f"#app {tag}").count() == 0
    links = await screen.page.locator(".md a").evaluate_all("(all) => all.map((a) => a.href)")
    assert links == ["https://evil.example/"]
    await expect(screen.page.locator(".md a")).to_have_text(
        "https://good.example (https://evil.example)"
    )
    shown = await screen.page.locator("#app").inner_text()
    assert "\u202e" not in shown
    assert "⟨U+202E⟩" in shown
    assert {url.split("/")[2] for url in asked if url.startswith("http")} == {
        f"127.0.0.1:{screen.api.port}"
    }
    await screen.open(f"{session}/context")
    await expect(screen.page.get_by_role("complementary")).to_contain_text("Next request")


async def test_the_context_that_is_shown_is_the_request_that_is_sent(
    screen: Screen, provider: ScriptedProvider
) -> None:
    provider.then(text("One."))
    session = await screen.new_session()
    await screen.say("First")
    await screen.see("One.")
    await screen.open(f"{session}/context")
    panel = screen.page.get_by_role("complementary", name="Context")
    await expect(panel).to_contain_text("Next request")
    folds = panel.get_by_role("button", name="System")
    systems: list[str | None] = []
    for at in range(await folds.count()):
        await folds.nth(at).click()
        opened = panel.locator(".fold-body pre")
        systems.append(await opened.nth(at).text_content())
    provider.then(text("Two."))
    await screen.say("Second")
    await screen.see("Two.")
    sent = provider.requests[-1]
    joined = "\n".join(sent.texts("system"))
    assert systems
    assert all(each is not None and each in joined for each in systems)


async def test_a_terminal_shows_colours(screen: Screen) -> None:
    await screen.open("terminal")
    await screen.press("New terminal")
    rows = screen.page.locator(".xterm-rows")
    await expect(rows).to_be_visible()
    await screen.page.locator(".xterm-helper-textarea").focus()
    await screen.page.keyboard.type("printf '\\033[31m%s\\033[0m\\n' r''ed\n")
    red = rows.locator("span", has_text="red").last
    await expect(red).to_have_css("color", "rgb(204, 0, 0)")


async def test_what_is_loaded_first_is_small() -> None:
    built = await built_page()
    index = (built / "index.html").read_text()
    first = set(re.findall(r"/assets/([\w.-]+)", index))
    first |= {path.name for path in built.glob("worker-*.js")} | {"index.html"}
    waiting = [name for name in first if name.startswith("main-")]
    while waiting:
        found = re.findall(r'(?:from|import)"\./([\w-]+\.js)"', (built / waiting.pop()).read_text())
        waiting += [name for name in found if name not in first]
        first |= set(found)
    assert sum((built / f"{name}.gz").stat().st_size for name in first) <= 70_000
    every = sum(path.stat().st_size for path in built.glob("*.gz") if ".txt" not in path.name)
    assert every <= 240_000
