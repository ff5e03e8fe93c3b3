"""The page for those who use the keyboard alone, a screen reader, a phone, or the dark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.api import Api
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.web.browser import installed, opened_page
from tests.web.screen import Screen

FEW: Final = ("", "{}", "{}/context")
SCREENS: Final = {
    "light": (
        *(*FEW, "{}/changes", "{}/usage", "{}/work", "{}/@3"),
        *("new", "health", "settings", "terminal"),
    ),
    "dark": FEW,
    "phone": FEW,
}
_AXE: Final = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] })
  return found.violations.filter((it) => ["serious", "critical"].includes(it.impact)).map((it) =>
    [it.id, ...it.nodes.map((node) => `${node.target} ${node.any[0]?.message}`)].join(" "))
}"""


async def faults(page: Page, axe: str) -> Sequence[str]:
    await page.evaluate(axe)
    return await page.evaluate(_AXE)


async def conversation(api: Api, provider: ScriptedProvider) -> str:
    """A Session that has something of everything, and asks."""
    todos = [{"content": "Look", "status": "completed", "priority": "high"}]
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"}, "c2")
    provider.then(
        calls(Call("todowrite", {"todos": todos}, "c1"), edit, saying="I *begin*."),
        text("# Done\n\n`code` and\n\n```python\nx = 1\n```", reasoning=["So it is."]),
        calls(Call("bash", {"command": "rm -rf build"}, "c3")),
    )
    session = await api.create(title="Something of everything")
    await api.ask(session, "Change it")
    async with api.stream("/api/event") as live:
        await api.prompt(session, "Clean up")
        await live.until("permission.v2.asked")
    return session


@pytest.mark.parametrize("look", SCREENS)
async def test_no_screen_shuts_people_out(
    look: str, browser: Browser, api: Api, provider: ScriptedProvider
) -> None:
    axe = Path(await installed(), "node_modules", "axe-core", "axe.min.js").read_text()
    session = await conversation(api, provider)
    async with opened_page(browser, dark=look == "dark", phone=look == "phone") as page:
        screen = Screen(page, api)
        found: dict[str, Sequence[str]] = {}
        for path in SCREENS[look]:
            await screen.open(path.format(session))
            await expect(page.locator("h1").first).to_be_visible()
            if "{}/" in path:
                await expect(page.locator(".panel-body, .track").first).to_be_visible()
            await expect(page.locator("main .loading")).to_have_count(0)
            name = path.format("session").replace("/", "-") or "overview"
            await screen.keep(f"{name}-{look}")
            width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert width <= 0, name
            if wrong := await faults(page, axe):
                found[name] = wrong
        assert found == {}


async def test_everything_is_reached_with_the_keyboard_alone(
    screen: Screen, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("bash", {"command": "rm -f nothing"})), text("All done."))
    page = screen.page
    await screen.open()
    await screen.see("There is no Session yet.")
    await page.keyboard.press("n")
    directory = page.get_by_label("Directory")
    await expect(directory).not_to_have_value("")
    await directory.press("Enter")
    prompt = page.get_by_role("textbox", name="Prompt")
    await expect(prompt).to_be_visible()
    await page.keyboard.press("i")
    await page.keyboard.type("Clean up")
    await page.keyboard.press("Enter")
    card = page.get_by_role("region", name="Permission: bash")
    await expect(card).to_be_visible()
    await page.keyboard.press("Escape")
    for _ in range(60):
        if await card.evaluate("(card) => card === document.activeElement"):
            break
        await page.keyboard.press("Shift+Tab")
    await expect(card).to_be_focused()
    await page.keyboard.press("a")
    await screen.see("All done.")
    for key, shown in (("1", "Context"), ("2", "Changes"), ("3", "Usage"), ("4", "Work")):
        await page.keyboard.press(key)
        await expect(page.get_by_role("complementary", name=shown)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("complementary")).to_have_count(0)
    await page.keyboard.press("t")
    await expect(page.get_by_role("slider")).to_be_visible()
    # A key is heard once the events are loaded.
    past = page.get_by_text("As it was").first
    for _ in range(40):
        await page.keyboard.press("ArrowLeft")
        if await past.is_visible():
            break
        await page.wait_for_timeout(250)
    await expect(past).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
