"""The past of a Session: any moment is shown as it was, and work can go on from there."""

from playwright.async_api import expect

from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.web.screen import Screen


async def told(screen: Screen, provider: ScriptedProvider) -> str:
    """A Session with two prompts, an edit and two answers."""
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    provider.then(text("Answer one."), calls(edit), text("Answer two."))
    session = await screen.new_session("With a past")
    await screen.say("Question one")
    await screen.see("Answer one.")
    await screen.say("Question two")
    await screen.see("Answer two.")
    return session


async def sequence_of(screen: Screen, session: str, wanted: str) -> int:
    history = await screen.api.history(session)
    return next(it["durable"]["seq"] for it in history if it["type"].endswith(wanted))


async def test_one_moves_through_the_past_and_back(
    screen: Screen, provider: ScriptedProvider
) -> None:
    session = await told(screen, provider)
    events = await screen.api.history(session)
    await screen.page.locator("main").press("t")
    await screen.see(f"of {len(events)}")
    await screen.page.keyboard.press("Home")
    await screen.miss("Answer one.", "Question one")
    for _ in range(len(events)):
        await screen.page.keyboard.press("ArrowRight")
        if await screen.page.get_by_text("Answer one.").count() > 0:
            break
    await screen.see("Answer one.", "As it was")
    await screen.miss("Question two", "Answer two.")
    await screen.keep("timeline-light")
    await screen.page.keyboard.press("End")
    await screen.see("Answer two.")
    await screen.miss("As it was")
    slider = screen.page.get_by_role("slider", name="Moment of the Session")
    box = await slider.bounding_box()
    assert box is not None
    await screen.page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 10)
    await screen.see("As it was")
    await screen.press("Clock")
    await screen.press("Events")
    await screen.page.keyboard.press("Escape")
    await screen.see("Answer two.")
    await expect(slider).to_have_count(0)


async def test_a_link_leads_to_a_moment_from_which_a_fork_goes_on(
    screen: Screen, provider: ScriptedProvider
) -> None:
    session = await told(screen, provider)
    seq = await sequence_of(screen, session, "step.ended")
    await screen.open(f"{session}/@{seq}")
    await screen.see("As it was", "Answer one.")
    await screen.miss("Answer two.")
    await screen.press("Copy link")
    await screen.see("Copied")
    copied = await screen.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{screen.url}/#/{session}/@{seq}"
    await screen.press("Fork here")
    await expect(screen.page.get_by_role("textbox", name="Prompt")).to_be_visible()
    await screen.see("Answer one.")
    await screen.miss("Question two", "As it was")
    assert session not in screen.page.url
    provider.then(text("Another answer."))
    await screen.say("Another question")
    await screen.see("Another answer.")


async def test_the_past_is_restored_with_its_files_except_what_others_changed(
    screen: Screen, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await told(screen, provider)
    notes = folders.project / "notes.txt"
    assert notes.read_text() == "one\n2\nthree\n"
    seq = await sequence_of(screen, session, "step.ended")
    await screen.open(f"{session}/@{seq}")
    await screen.press("Revert to here")
    await screen.see("These files are back as they were.")
    assert notes.read_text() == "one\ntwo\nthree\n"
    await screen.press("Restore all")
    await screen.see("Answer two.")
    assert notes.read_text() == "one\n2\nthree\n"
    notes.write_text("by another hand\n")
    await screen.open(f"{session}/@{seq}")
    await screen.press("Revert to here")
    await screen.see("Left alone", "notes.txt")
    await screen.press("Make it final")
    await expect(screen.page.get_by_role("textbox", name="Prompt")).to_be_visible()
    await screen.miss("Answer two.", "Question two")
    assert notes.read_text() == "by another hand\n"
