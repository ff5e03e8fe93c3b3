"""A conversation in the page: said, streamed, asked, interrupted, and still there after all."""

import asyncio

import pytest
from playwright.async_api import Browser, expect

from tests.support import server_process
from tests.support.api import Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.web.browser import opened_page
from tests.web.screen import Screen

QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ],
}


async def test_an_answer_is_seen_while_it_is_written_and_after_a_reload(
    screen: Screen, provider: ScriptedProvider
) -> None:
    hold, reasoning = asyncio.Event(), ["First I ", "look."]
    provider.then(text("**Half** of ", "an answer", reasoning=reasoning, hold=hold))
    await screen.new_session()
    await screen.say("Tell me")
    await screen.see("Half", "of an answer", "Thought")
    await expect(screen.page.locator(".md strong")).to_have_text("Half")
    await screen.miss("First I look.")
    await screen.press("Thought")
    await screen.see("First I look.")
    await screen.page.reload()
    await screen.see("of an answer")
    hold.set()
    await expect(screen.page.locator(".assistant footer")).to_contain_text("fake-model")
    await expect(screen.page.locator(".md")).to_have_count(1)
    await expect(screen.page.locator(".md")).to_have_text("Half of an answer")


async def test_tools_are_cards_and_an_edit_shows_its_diff(
    screen: Screen, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    todos = [{"content": "Count", "status": "in_progress", "priority": "high"}]
    provider.then(
        calls(Call("todowrite", {"todos": todos}, "c1"), Call("read", {"path": "notes.txt"}, "c2")),
        calls(Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"}, "c3")),
        calls(Call("bash", {"command": "cat notes.txt && false"}, "c4")),
        text("Done."),
    )
    session = await screen.new_session()
    await screen.say("Count")
    await screen.see("Done.", "0 of 1 done", "notes.txt", "exit 1")
    patch = screen.page.get_by_role("region", name="Changes of notes.txt")
    await expect(patch.locator("tr.del")).to_contain_text("two")
    await expect(patch.locator("tr.add .text")).to_have_text("2")
    await screen.press("Run cat notes.txt")
    await expect(screen.page.get_by_role("region", name="Output")).to_contain_text("three")
    for panel, shown in (("changes", "notes.txt"), ("work", "Count"), ("usage", "By model")):
        await screen.open(f"{session}/{panel}")
        await expect(screen.page.get_by_role("complementary")).to_contain_text(shown)
    assert (folders.project / "notes.txt").read_text() == "one\n2\nthree\n"


async def test_a_permission_with_its_diff_waits_on_the_first_screen_and_is_answered(
    screen: Screen, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    edit = Call("edit", {"path": "deploy.sh", "oldString": "rsync", "newString": "rsync --delete"})
    provider.then(calls(edit), text("Deployed."))
    session = await screen.new_session("Deploy")
    await screen.say("Delete stale files")
    await screen.see("Change files")
    assert "--delete" not in (folders.project / "deploy.sh").read_text()
    await screen.open()
    await screen.see("1 request waits for you", "Deploy")
    card = screen.page.get_by_role("region", name="Permission: edit")
    await expect(card.locator("tr.add")).to_contain_text("rsync --delete build/")
    await card.focus()
    await card.press("a")
    await expect(screen.page.get_by_role("heading", name="Sessions")).to_be_visible()
    await screen.open(session)
    await screen.see("Deployed.")
    assert "--delete" in (folders.project / "deploy.sh").read_text()
    provider.then(calls(Call("bash", {"command": "rm -rf /tmp/x && ls"}, "c2")), text("Kept."))
    await screen.say("Clean")
    await screen.see("It runs 2 things")
    card = screen.page.get_by_role("region", name="Permission: bash")
    await card.press("s")
    await screen.see("Allow from now on")
    await card.get_by_role("button", name="Back").click()
    await card.get_by_role("button", name="Refuse").click()
    await screen.page.get_by_label("Reason").fill("keep them")
    await screen.page.get_by_label("Reason").press("Enter")
    await screen.miss("It runs 2 things")


async def test_a_question_is_answered(screen: Screen, provider: ScriptedProvider) -> None:
    provider.then(calls(Call("question", {"questions": [QUESTION]})), text("Blue it is."))
    await screen.new_session()
    await screen.say("Paint it")
    await screen.see("Which colour?", "warm")
    await expect(screen.button("Answer")).to_be_disabled()
    await screen.page.get_by_label("Blue").check()
    await screen.keep("question-light")
    await screen.press("Answer")
    await screen.see("Blue it is.")
    answers = provider.requests[-1].texts("tool")
    assert any("Blue" in each for each in answers)


async def test_waiting_prompts_are_edited_ordered_and_cancelled_and_work_is_interrupted(
    screen: Screen, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("Working", hold=hold))
    session = await screen.new_session()
    await screen.say("Begin")
    await screen.see("Working")
    for number in ("first", "second", "third"):
        await screen.say(f"the {number}", key="Alt+Enter")
        await screen.see(f"the {number}")
    waiting = screen.page.locator(".waiting-prompt")
    await expect(waiting).to_have_count(3)
    await waiting.nth(2).get_by_role("button", name="Earlier").click()
    await expect(waiting.nth(1)).to_contain_text("the third")
    await waiting.nth(0).get_by_role("button", name="Cancel").click()
    await expect(waiting).to_have_count(2)
    await waiting.nth(0).get_by_role("button", name="Edit").click()
    await screen.page.get_by_label("Edit the prompt").fill("the third, but better")
    await screen.press("Save")
    await expect(waiting.nth(0)).to_contain_text("the third, but better")
    await screen.press("Interrupt")
    await expect(screen.button("Interrupt")).to_have_count(0)
    left = (await screen.api.get(f"/api/session/{session}/inbox"))["data"]
    assert [item["prompt"]["text"] for item in left] == ["the third, but better", "the second"]
    hold.set()


async def test_a_server_that_is_killed_in_mid_stream_loses_and_doubles_nothing(
    browser: Browser,
    folders: ProjectFolders,
    provider: ScriptedProvider,
    page_directory: str,
) -> None:
    folders.variables["PERDURE_WEB_DIRECTORY"] = page_directory
    hold = asyncio.Event()
    provider.then(text("Whole."), text("Half an", " answer", hold=hold))
    provider.otherwise = lambda request: text("Whole again.")
    first = await server_process.start(folders, "first")
    async with opened_page(browser) as page:
        screen = Screen(page, Api(first.api.port))
        session = await screen.new_session("Durable")
        await screen.say("one")
        await screen.see("Whole.")
        await screen.say("two")
        await screen.see("Half an answer")
        await first.kill()
        await screen.see("The server does not answer.")
        second = await server_process.start(folders, "second", port=first.api.port)
        try:
            await screen.miss("The server does not answer.")
            await screen.see("two")
            api = Api(second.api.port)
            await api.wait(session)
            shown = await api.messages(session)
            said = [it["text"] for it in shown if it["type"] == "user"]
            await expect(page.locator(".bubble")).to_have_text(said)
            answers = [
                part["text"]
                for it in shown
                if it["type"] == "assistant"
                for part in it["content"]
                if part["type"] == "text" and part["text"]
            ]
            await expect(page.locator(".assistant .md")).to_have_text(answers)
            await screen.say("three")
            await screen.see("three")
        finally:
            await second.stop()


@pytest.mark.parametrize("tabs", [9])
async def test_nine_tabs_share_one_stream(
    tabs: int, screen: Screen, provider: ScriptedProvider
) -> None:
    session = await screen.new_session("Shared")
    others = [await screen.page.context.new_page() for _ in range(tabs - 1)]
    for other in others:
        await other.goto(f"{screen.url}/#/{session}")
        await expect(other.get_by_role("textbox", name="Prompt")).to_be_visible()
    provider.then(text("Seen by all."))
    await screen.say("Hello")
    for page in (screen.page, *others):
        await expect(page.get_by_text("Seen by all.")).to_be_visible()
