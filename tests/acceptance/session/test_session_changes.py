"""Renaming, archiving, forking, deleting a Session, and looking at it as a whole."""

import asyncio
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Deleted, Renamed
from perdure.store.tables import deletion_table
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def told(messages: list[JsonObject]) -> list[tuple[str, str | None]]:
    return [
        (m["type"], m.get("text") or "".join(p.get("text", "") for p in m.get("content", [])))
        for m in messages
    ]


async def test_a_chosen_title_stays(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("ok"))
    session = await api.create()
    answer = await api.call("PATCH", f"/api/session/{session}", {"title": " My\n\x1b[31m title "})
    assert answer.json["data"]["title"] == "My [31m title"
    await api.ask(session, "Something else")
    assert (await api.session(session))["title"] == "My [31m title"
    for title in ("", " \n ", "x" * (limits.TITLE_CHOSEN_CHARS_MAX + 1)):
        refused = await api.call("PATCH", f"/api/session/{session}", {"title": title})
        assert (refused.status, refused.tag) == (400, "InvalidRequestError")
    assert "renamed" in await api.facts(session)


@requirement("S136")
async def test_archived_sessions_can_be_listed_apart_page_by_page(api: Api) -> None:
    ids = [await api.create() for _ in range(5)]
    for one in ids[:3]:
        await api.post(f"/api/session/{one}/archive")
    await api.post(f"/api/session/{ids[0]}/unarchive")
    await api.post(f"/api/session/{ids[0]}/unarchive")

    async def listed(query: str) -> list[str]:
        page = await api.get(f"/api/session?{query}")
        found = [item["id"] for item in page["data"]]
        while "next" in page["cursor"]:
            page = await api.get(f"/api/session?cursor={page['cursor']['next']}")
            found += [item["id"] for item in page["data"]]
        return sorted(found)

    assert await listed("archived=true&limit=1") == sorted(ids[1:3])
    assert await listed("archived=false&limit=1") == sorted([ids[0], *ids[3:]])
    assert await listed("limit=2") == sorted(ids)
    assert (await api.call("GET", "/api/session?archived=maybe")).status == 400
    first = await api.session(ids[1])
    await api.post(f"/api/session/{ids[1]}/archive")
    assert (await api.session(ids[1]))["time"]["archived"] == first["time"]["archived"]


async def test_a_snapshot_and_what_follows_it_are_the_whole_story(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("a"), text("b"))
    session = await api.create()
    await api.ask(session, "one")
    snapshot = (await api.get(f"/api/session/{session}/snapshot?limit=1"))["data"]
    assert snapshot["session"]["id"] == session
    assert [m["type"] for m in snapshot["messages"]] == ["assistant"]
    earlier = snapshot["cursor"]["previous"]
    page = await api.get(f"/api/session/{session}/message?cursor={earlier}")
    assert [m.get("text") for m in page["data"]] == ["one"]
    await api.ask(session, "two")
    followed = await api.history(session, after=snapshot["seq"])
    assert followed[0]["durable"]["seq"] == snapshot["seq"] + 1
    assert followed[0]["data"]["prompt"]["text"] == "two"


async def test_a_fork_goes_on_from_a_message_and_the_original_does_not_notice(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    provider.then(text("first"), text("second"), text("other"))
    session = await api.create()
    await api.ask(session, "one")
    before = await api.ask(session, "two")
    answer_id = before[1]["id"]
    body = {"id": "ses_fork", "messageID": answer_id}
    fork = (await api.post(f"/api/session/{session}/fork", body))["data"]
    assert (fork["id"], fork["title"]) == ("ses_fork", "one (fork)")
    copies = await api.messages("ses_fork")
    assert told(copies) == told(before)[:2]
    assert {m["id"] for m in copies}.isdisjoint(m["id"] for m in before)
    await api.ask("ses_fork", "three")
    assert provider.requests[-1].texts("user") == ["one", "three"]
    assert "first" in provider.requests[-1].texts("assistant")[0]
    assert await api.messages(session) == before
    again = (await api.post(f"/api/session/{session}/fork", {"id": "ses_fork"}))["data"]
    assert again["time"]["created"] == fork["time"]["created"]
    await database_check.check(instance.folders.database)


async def test_a_fork_leaves_out_what_was_not_finished(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    provider.then(text("done"), text("never seen", hold=hold))
    session = await api.create()
    await api.ask(session, "one")
    await api.prompt(session, "two")
    await provider.arrived(2)
    await api.prompt(session, "waits", delivery="queue")
    fork = (await api.post(f"/api/session/{session}/fork"))["data"]["id"]
    assert told(await api.messages(fork)) == [
        ("user", "one"),
        ("assistant", "done"),
        ("user", "two"),
    ]
    assert (await api.get(f"/api/session/{fork}/inbox"))["data"] == []
    provider.then(text("other"), text("last"))
    hold.set()
    await api.wait(session)
    await api.wait(fork)
    await database_check.check(instance.folders.database)


async def test_a_fork_from_nowhere_is_refused(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("ok"))
    session = await api.create()
    await api.ask(session, "one")
    path = f"/api/session/{session}/fork"
    assert (await api.call("POST", path, {"messageID": "msg_absent"})).tag == "MessageNotFoundError"
    assert (await api.call("POST", path, {"seq": 999})).status == 400
    assert (await api.call("POST", path, {"seq": 1, "messageID": "msg_x"})).status == 400
    empty = (await api.post(path, {"seq": 0}))["data"]["id"]
    assert await api.messages(empty) == []


async def test_a_deleted_session_leaves_nothing_behind(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    provider.then(calls(Call("bash", {"command": "seq 100000"})), text("long"), text("other"))
    session, other = await api.create(), await api.create()
    await api.ask(session, "one")
    await api.ask(other, "stays")
    assert kept_files(instance.folders.tool_output)
    async with api.events(session) as stream, api.stream("/api/event") as live:
        answer = await api.call("DELETE", f"/api/session/{session}")
        assert answer.status == 204
        seen = await live.until("deleted", sessionID=session)
        assert seen
        while await stream.frame() is not None:
            pass
    assert (await api.call("GET", f"/api/session/{session}")).tag == "SessionNotFoundError"
    assert (await api.call("DELETE", f"/api/session/{session}")).status == 404
    assert kept_files(instance.folders.tool_output) == []
    rows = database_check.dump(instance.folders.database)
    assert [t for t, found in rows.items() if any(session in map(str, r) for r in found)] == []
    assert told(await api.messages(other))[-1] == ("assistant", "other")
    await database_check.check(instance.folders.database)


async def test_no_word_of_a_deleted_session_stays_in_any_file(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """As raw bytes: database, log, free pages, tool output and everything else."""
    word = "Zanzibar"
    async with running(folders) as instance:
        api = instance.api
        kept, session = await api.create(), await api.create()
        await api.ask(kept, "Timbuktu stays")
        for number in range(6):
            asked = {"command": f"seq 20000 | sed s/^/{word}/", "description": word}
            command = Call("bash", asked, id=f"c{number}")
            provider.then(calls(command), text(*(f"{word}{each} " for each in range(300))))
            await api.ask(session, f"{word} {number} " * 200)
        await api.post(f"/api/session/{session}/fork", {})
        assert found_in(folders.data, word)
        for one in (await api.get("/api/session"))["data"]:
            if one["id"] != kept:
                assert (await api.call("DELETE", f"/api/session/{one['id']}")).status == 204
        assert found_in(folders.data, word) == []
        assert found_in(folders.data, "Timbuktu")
    assert found_in(folders.data, word) == []
    await database_check.check(folders.database)


def found_in(directory: Path, word: str) -> list[str]:
    """The files that contain the word."""
    paths = (path for path in directory.rglob("*") if path.is_file())
    return [path.name for path in paths if word.encode() in path.read_bytes()]


async def test_deleting_interrupts_what_runs(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    provider.then(text("never", hold=asyncio.Event()))
    session = await api.create()
    await api.prompt(session, "one")
    await provider.arrived(1)
    assert (await api.call("DELETE", f"/api/session/{session}")).status == 204
    assert (await api.get("/api/session/active"))["data"] == {}
    assert (await api.get("/api/session"))["data"] == []


async def test_an_id_that_was_deleted_starts_from_nothing(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("before"), text("after"))
    session = await api.create(id="ses_again")
    await api.ask(session, "one")
    await api.call("DELETE", f"/api/session/{session}")
    await api.create(id="ses_again")
    assert told(await api.ask(session, "two")) == [("user", "two"), ("assistant", "after")]
    assert provider.requests[-1].texts("user") == ["two"]


async def test_deletions_and_prompts_at_the_same_time_leave_no_half_session(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    provider.then(*(text("ok") for _ in range(30)))
    ids = [await api.create() for _ in range(10)]
    answers = await asyncio.gather(
        *(api.call("POST", f"/api/session/{one}/prompt", {"prompt": {"text": "x"}}) for one in ids),
        *(api.call("DELETE", f"/api/session/{one}") for one in ids),
        *(api.call("DELETE", f"/api/session/{one}") for one in ids),
    )
    assert {answer.status for answer in answers} <= {200, 204, 404}
    rows = database_check.dump(instance.folders.database)
    assert [rows[t] for t in ("event", "session", "session_message", "session_deletion")] == [
        [],
        [],
        [],
        [],
    ]


async def test_a_deletion_that_a_dead_process_began_is_finished_at_the_next_start(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("ok"))
    async with running(folders) as instance:
        session = SessionID(await instance.api.create())
        await instance.api.ask(session, "one")
        begun = Deleted(timestamp=1, session_id=session)
        await instance.runtime.store.append(session, [begun], location=None)
        assert (await instance.api.call("GET", f"/api/session/{session}")).status == 404
        late = Renamed(timestamp=1, session_id=session, title="too late")
        with pytest.raises(SessionNotFoundError):
            await instance.runtime.store.append(session, [late], location=None)
    assert database_check.dump(folders.database)["session_message"] != []
    async with running(folders) as instance, asyncio.timeout(PATIENCE_SECONDS):
        database = instance.runtime.store.database
        while await database.read(deletion_table.list_sessions):
            await database.changed_elsewhere()
    rows = database_check.dump(folders.database)
    assert [t for t, found in rows.items() if any(session in map(str, r) for r in found)] == []


def kept_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("tool_*")) if directory.exists() else []
