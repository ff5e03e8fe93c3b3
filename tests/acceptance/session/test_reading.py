"""Pages go both ways and end; lookups answer or refuse, and never tell whose a thing is."""

import pytest

from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider


async def talk(api: Api, turns: int) -> str:
    session = await api.create()
    for turn in range(turns):
        await api.ask(session, f"turn {turn}")
    return session


async def walk(api: Api, path: str, cursor: str, direction: str) -> list[JsonObject]:
    """Every page from `cursor` on, until there is no more."""
    pages: list[JsonObject] = []
    while True:
        page = await api.get(f"{path}?cursor={cursor}")
        pages.append(page)
        if direction not in page["cursor"]:
            return pages
        cursor = page["cursor"][direction]


@requirement("S23", "S137", "S160", "S193")
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_messages_are_paged_forth_and_back(api: Api, order: str) -> None:
    session = await talk(api, 4)
    path = f"/api/session/{session}/message"
    everything = (await api.get(f"{path}?order={order}&limit=200"))["data"]
    assert len(everything) == 8
    first = await api.get(f"{path}?order={order}&limit=3")
    assert "previous" not in first["cursor"]
    forth = await walk(api, path, first["cursor"]["next"], "next")
    assert [m for page in (first, *forth) for m in page["data"]] == everything
    assert [len(page["data"]) for page in forth] == [3, 2]
    back = await walk(api, path, forth[-1]["cursor"]["previous"], "previous")
    assert [m for page in reversed(back) for m in page["data"]] == everything[:6]
    assert "previous" not in back[-1]["cursor"]


@requirement("S160")
async def test_the_newest_message_comes_first_unless_asked_otherwise(api: Api) -> None:
    session = await talk(api, 2)
    newest = (await api.get(f"/api/session/{session}/message"))["data"]
    assert newest == list(reversed(await api.messages(session)))


async def test_an_empty_page_has_no_cursors_at_all(api: Api) -> None:
    session = await api.create()
    page = await api.call("GET", f"/api/session/{session}/message")
    assert page.json == {"data": [], "cursor": {}}
    nothing = await api.call("GET", "/api/session?search=zzzz")
    assert nothing.json == {"data": [], "cursor": {}}


@requirement("S137", "S193")
async def test_a_cursor_is_good_for_its_own_session_and_list_only(api: Api) -> None:
    one, other = await talk(api, 2), await talk(api, 2)
    page = await api.get(f"/api/session/{one}/message?limit=1")
    cursor = page["cursor"]["next"]
    for path in (f"/api/session/{other}/message", "/api/session"):
        answer = await api.call("GET", f"{path}?cursor={cursor}")
        assert (answer.status, answer.tag) == (400, "InvalidCursorError")


@requirement("S193")
async def test_a_cursor_that_was_tampered_with_is_refused(api: Api) -> None:
    session = await talk(api, 2)
    path = f"/api/session/{session}/message"
    cursor: str = (await api.get(f"{path}?limit=1"))["cursor"]["next"]
    altered = [
        cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        for at in range(0, len(cursor) - 1, 7)
    ]
    for text in (*altered, cursor[:-4], cursor + "AAAA", "e30", "%00", "!!", "A" * 5_000):
        answer = await api.call("GET", f"{path}?cursor={text}")
        assert (answer.status, answer.tag) == (400, "InvalidCursorError"), text


async def test_a_cursor_is_the_whole_query(api: Api) -> None:
    session = await talk(api, 2)
    page = await api.get(f"/api/session/{session}/message?limit=1")
    cursor = page["cursor"]["next"]
    answer = await api.call("GET", f"/api/session/{session}/message?order=asc&cursor={cursor}")
    assert (answer.status, answer.tag) == (400, "InvalidCursorError")


@requirement("S138")
async def test_a_message_is_found_by_its_session_alone(api: Api) -> None:
    one, other = await talk(api, 1), await talk(api, 1)
    message = (await api.messages(one))[0]
    found = await api.get(f"/api/session/{one}/message/{message['id']}")
    assert found["data"] == message
    foreign = await api.call("GET", f"/api/session/{other}/message/{message['id']}")
    missing = await api.call("GET", f"/api/session/{other}/message/msg_missing")
    assert (foreign.status, foreign.tag) == (404, "MessageNotFoundError")
    assert foreign.json | {"messageID": "", "message": ""} == missing.json | {
        "messageID": "",
        "message": "",
    }
    unknown = await api.call("GET", f"/api/session/ses_unknown/message/{message['id']}")
    assert (unknown.status, unknown.tag) == (404, "SessionNotFoundError")


@requirement("S138")
async def test_an_admitted_prompt_is_no_message_yet(api: Api) -> None:
    session = await api.create()
    await api.prompt(session, "later", id="msg_later", resume=False)
    answer = await api.call("GET", f"/api/session/{session}/message/msg_later")
    assert answer.status == 404


@requirement("S140")
async def test_the_context_is_the_conversation_in_order(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talk(api, 2)
    context = (await api.get(f"/api/session/{session}/context"))["data"]
    assert context == await api.messages(session)
    system = provider.requests[0].messages[0]["content"]
    assert all(system not in str(message) for message in context)


@requirement("S154")
async def test_history_is_read_in_pages_by_sequence(api: Api) -> None:
    session = await talk(api, 2)
    whole = await api.history(session)
    assert [event["durable"]["seq"] for event in whole] == list(range(1, 13))
    path = f"/api/session/{session}/history"
    first = await api.get(f"{path}?limit=5")
    rest = await api.get(f"{path}?limit=100&after=5")
    assert (first["hasMore"], rest["hasMore"]) == (True, False)
    assert first["data"] + rest["data"] == whole
    assert await api.get(f"{path}?after=999") == {"data": [], "hasMore": False}


@requirement("S148")
async def test_messages_and_the_events_that_made_them_have_ids_of_their_own(api: Api) -> None:
    session = await talk(api, 1)
    events = await api.history(session)
    messages = await api.messages(session)
    assert all(event["id"].startswith("evt_") for event in events)
    assert all(message["id"].startswith("msg_") for message in messages)
    assert len({event["id"] for event in events}) == len(events)
    made = {event["data"].get("messageID") for event in events}
    assert messages[0]["id"] in made


@requirement("S135", "S136")
async def test_sessions_are_paged_and_filtered(api: Api, folders: ProjectFolders) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    made = [await api.create(id=f"ses_{number}") for number in range(5)]
    await api.create(id="ses_inner", location={"directory": str(inner)})
    path = f"/api/session?directory={folders.project}"
    first = await api.get(f"{path}&limit=2&order=asc")
    pages = await walk(api, "/api/session", first["cursor"]["next"], "next")
    found = [item["id"] for page in (first, *pages) for item in page["data"]]
    assert found == made
    assert len((await api.get("/api/session"))["data"]) == 6


@requirement("S135")
async def test_sessions_are_listed_newest_first_whatever_their_ids_and_the_clock_say(
    api: Api,
) -> None:
    """Several are made in one millisecond. One that a cursor names may be deleted meanwhile."""
    made = [await api.create(id=f"ses_{'daefbc'[number % 6]}{number}") for number in range(18)]
    assert [item["id"] for item in (await api.get("/api/session"))["data"]] == made[::-1]
    first = await api.get("/api/session?limit=2")
    await api.call("DELETE", f"/api/session/{made[-2]}")
    pages = await walk(api, "/api/session", first["cursor"]["next"], "next")
    found = [item["id"] for page in (first, *pages) for item in page["data"]]
    assert found == made[::-1]


async def test_a_search_takes_its_words_literally(api: Api) -> None:
    plain, percent = await api.create(), await api.create()
    await api.ask(plain, "100 of 100")
    await api.ask(percent, "100% done_")
    for search, expected in (("%25", [percent]), ("_", [percent]), ("100", [percent, plain])):
        found = (await api.get(f"/api/session?search={search}"))["data"]
        assert {session["id"] for session in found} == set(expected)


async def test_sessions_are_read_even_when_their_directory_is_gone(
    api: Api, folders: ProjectFolders
) -> None:
    lost = folders.project / "lost"
    lost.mkdir()
    session = await api.create(location={"directory": str(lost)})
    await api.prompt(session, "hi", resume=False)
    lost.rmdir()
    assert (await api.session(session))["location"]["directory"] == str(lost)
    assert len(await api.history(session)) == 1
    assert await api.messages(session) == []
