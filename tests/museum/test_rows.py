"""One damaged row: it is named in the error, all else works, and the log restores the rest."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pytest

from perdure.ports import Row
from perdure.schema.codec import JsonObject
from perdure.store.database import sqlite_connection
from tests.museum import old_databases
from tests.museum.old_databases import Pair
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text

JUNK: Final = "CAST('{\"half' AS BLOB)"
NO_TEXT: Final = "x'7b2261223a22ff227d'"
WRONG_SHAPE: Final = "CAST('{\"id\": 7}' AS BLOB)"


@dataclass(frozen=True, slots=True)
class Blow:
    """One statement that damages `:id`, and how its Session answers from then on."""

    table: str
    sql: str
    seq: int | None
    refused: tuple[str, ...]
    """Paths below the Session that can no longer be answered."""
    works: tuple[str, ...] = ()


PROJECTED: Final = ("", "/message", "/context")
LOG: Final = {
    "event of no JSON": f"SET data = {JUNK}",
    "event of bytes that are no text": f"SET data = {NO_TEXT}",
    "event of nothing": "SET data = x''",
    "event that became a text": "SET data = CAST(data AS TEXT)",
    "event of an unknown kind": "SET type = 'session.next.dreamt.1'",
    "event of an unknown version": "SET type = 'session.next.prompted.9'",
    "event of no version": "SET type = 'prompted\"'",
    "event at no location": "SET location = 99",
}
PROJECTIONS: Final = {
    "message of no JSON": Blow(
        "session_message",
        f"UPDATE session_message SET data = {JUNK} WHERE session_id = :id AND type = 'user'",
        2,
        ("/message", "/context"),
        ("", "/history"),
    ),
    "message with a byte order mark": Blow(
        "session_message",
        "UPDATE session_message SET data = CAST(x'efbbbf' || data AS BLOB)"
        " WHERE session_id = :id AND type = 'user'",
        2,
        ("/message", "/provider-context"),
        ("", "/history"),
    ),
    "session of no JSON": Blow(
        "session", f"UPDATE session SET data = {JUNK} WHERE id = :id", None, PROJECTED
    ),
    "session of another shape": Blow(
        "session", f"UPDATE session SET data = {WRONG_SHAPE} WHERE id = :id", None, PROJECTED
    ),
}
INBOX: Final = {
    "prompt that points nowhere": "SET admitted_seq = 999, prompt_seq = 999",
    "prompt that points at another event": "SET admitted_seq = 3, prompt_seq = 3",
    "prompt with an unknown delivery": "SET delivery = 'carrier pigeon'",
}


@requirement("S150")
@pytest.mark.parametrize("blow", LOG)
async def test_a_damaged_event_is_named_and_everything_else_is_read(
    folders: ProjectFolders, provider: ScriptedProvider, blow: str
) -> None:
    pair = await old_databases.conversations(folders, provider)
    hit(folders, f"UPDATE event {LOG[blow]} WHERE session_id = :id AND seq = 5", pair)
    async with running(folders, damaged=True) as instance:
        api = instance.api
        await expect_answers(api, pair.hurt, ("", "/message", "/context"))
        page = await api.get(f"/api/session/{pair.hurt}/history")
        assert [event["durable"]["seq"] for event in page["data"]] == [1, 2, 3, 4]
        assert page["hasMore"], "there is more, and the next page tells why it is not there"
        await expect_refusal(api, pair, "/history?after=4", table="event", seq=5)
        async with api.stream(f"/api/session/{pair.hurt}/event") as stream:
            seen: list[int] = []
            while (frame := await stream.frame()) is not None:
                seen += [] if frame.is_comment else [frame.event["durable"]["seq"]]
        assert seen == [1, 2, 3, 4], "a stream gives what it can, then ends"
        await expect_the_other_to_work(api, pair, provider)
    if "location" in blow:
        return
    doctor = await old_databases.perdure(folders, "doctor")
    assert doctor.status == 1
    assert f"Session {pair.hurt} has a damaged row in event at sequence 5" in doctor.output
    before = database_check.dump(folders.database)
    repaired = await old_databases.perdure(folders, "doctor", "--repair")
    assert (repaired.status, "restored" in repaired.output) == (1, False)
    assert database_check.dump(folders.database) == before, "nothing is made up for a damaged log"


@requirement("S150")
@pytest.mark.parametrize("name", PROJECTIONS)
async def test_a_damaged_projection_is_named_and_restored_from_the_log(
    folders: ProjectFolders, provider: ScriptedProvider, name: str
) -> None:
    blow = PROJECTIONS[name]
    pair = await old_databases.conversations(folders, provider)
    before = database_check.dump(folders.database)
    hit(folders, blow.sql, pair)
    async with running(folders) as instance:
        for path in blow.refused:
            await expect_refusal(instance.api, pair, path, table=blow.table, seq=blow.seq)
        await expect_answers(instance.api, pair.hurt, blow.works)
        listed = {session["id"] for session in (await instance.api.get("/api/session"))["data"]}
        assert listed == ({pair.sound} if blow.table == "session" else {pair.sound, pair.hurt})
    damaged = database_check.dump(folders.database)
    doctor = await old_databases.perdure(folders, "doctor")
    assert (doctor.status, pair.hurt in doctor.output) == (1, True)
    repaired = await old_databases.perdure(folders, "doctor", "--repair")
    assert repaired.status == 0, repaired.output
    after = database_check.dump(folders.database)
    for table in database_check.PROJECTIONS:
        assert of(after[table], pair.hurt) == of(before[table], pair.hurt), table
    copy = folders.database.with_name("perdure.db.before-repair")
    assert database_check.dump(copy)[blow.table] == damaged[blow.table]
    async with running(folders) as instance:
        await instance.api.wait(pair.hurt)
        await expect_answers(instance.api, pair.hurt, blow.refused)
        await expect_the_other_to_work(instance.api, pair, provider)


@requirement("S150")
@pytest.mark.parametrize("name", INBOX)
async def test_a_damaged_prompt_stops_its_own_session_and_no_other(
    folders: ProjectFolders, provider: ScriptedProvider, name: str
) -> None:
    pair = await old_databases.conversations(folders, provider)
    before = database_check.dump(folders.database)
    prompt = old_databases.waiting(pair.hurt)
    hit(folders, f"UPDATE session_input {INBOX[name]} WHERE id = '{prompt}'", pair)
    asked = len(provider.requests)
    async with running(folders) as instance:
        body = {"id": prompt, "prompt": {"text": "and later?"}}
        answer = await instance.api.call("POST", f"/api/session/{pair.hurt}/prompt", body)
        assert (answer.status, answer.tag) == (409, "DamagedRowError")
        assert answer.json["table"] == "session_input"
        await instance.api.wait(pair.hurt)
        # What was only admitted in the other Session can still be run.
        await instance.api.post(f"/api/session/{pair.sound}/resume")
        await instance.api.wait(pair.sound)
        assert len(provider.requests) == asked + 1
        await expect_the_other_to_work(instance.api, pair, provider)
    doctor = await old_databases.perdure(folders, "doctor")
    assert (doctor.status, prompt in doctor.output) == (1, True)
    repaired = await old_databases.perdure(folders, "doctor", "--repair")
    assert repaired.status == 0, repaired.output
    after = database_check.dump(folders.database)
    assert of(after["session_input"], prompt) == of(before["session_input"], prompt)


async def test_a_list_stays_whole_in_pages_around_what_cannot_be_read(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as instance:
        for _ in range(9):
            await instance.api.create()
        # Those of one millisecond are listed in the order of their ids.
        whole = await instance.api.get("/api/session?limit=9&order=asc")
        ids = [session["id"] for session in whole["data"]]
    with closing(sqlite_connection.connect(str(folders.database))) as connection:
        for number in (0, 3, 4, 5, 8):
            connection.execute(
                f"UPDATE session SET data = {JUNK} WHERE id = :id", {"id": ids[number]}
            )
    async with running(folders) as instance:
        found: list[str] = []
        page: JsonObject = await instance.api.get("/api/session?limit=2&order=asc")
        while page["data"]:
            found += [session["id"] for session in page["data"]]
            if (cursor := page["cursor"].get("next")) is None:
                break
            page = await instance.api.get(f"/api/session?cursor={cursor}")
    assert found == [ids[number] for number in (1, 2, 6, 7)]


async def test_a_session_that_was_cut_off_and_damaged_holds_up_nobody_at_the_start(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    pair = await old_databases.conversations(folders, provider)
    hit(
        folders,
        "INSERT INTO session_lease VALUES (:id, 'prc_dead', 7)"
        " ON CONFLICT DO UPDATE SET process = 'prc_dead'",
        pair,
    )
    hit(folders, f"UPDATE session_message SET data = {JUNK} WHERE session_id = :id", pair)
    async with running(folders) as instance:
        await instance.api.wait(pair.sound)
        await expect_the_other_to_work(instance.api, pair, provider)
        # Readers of what other processes write are woken by the same watch.
        await expect_refusal(instance.api, pair, "/message", table="session_message", seq=None)


async def test_what_cannot_be_read_is_not_taken_over_from_the_dead(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    pair = await old_databases.conversations(folders, provider)
    hit(
        folders,
        "INSERT INTO session_lease VALUES (:id, 'prc_dead', 7)"
        " ON CONFLICT DO UPDATE SET process = 'prc_dead'",
        pair,
    )
    hit(folders, f"UPDATE session_message SET data = {JUNK} WHERE session_id = :id", pair)
    async with running(folders) as instance:
        await instance.api.prompt(pair.hurt, "go on")
        await instance.api.wait(pair.hurt)
    leases = {row[0]: row[1] for row in database_check.dump(folders.database)["session_lease"]}
    # A repair still shows that a process died with it.
    assert leases[pair.hurt] == "prc_dead"


async def expect_refusal(api: Api, pair: Pair, path: str, *, table: str, seq: int | None) -> None:
    answer = await api.call("GET", f"/api/session/{pair.hurt}{path}")
    assert (answer.status, answer.tag) == (409, "DamagedRowError"), path
    told = answer.json
    assert (told["sessionID"], told["table"]) == (pair.hurt, table)
    assert seq is None or told["seq"] == seq
    assert "perdure doctor" in told["message"]


async def expect_answers(api: Api, session: str, paths: tuple[str, ...]) -> None:
    for path in paths:
        await api.get(f"/api/session/{session}{path}")


async def expect_the_other_to_work(api: Api, pair: Pair, provider: ScriptedProvider) -> None:
    assert pair.sound in {session["id"] for session in (await api.get("/api/session"))["data"]}
    await api.wait(pair.sound)
    provider.then(text("unharmed"))
    messages = await api.ask(pair.sound, "how are you?")
    assert messages[-1]["content"][0]["text"] == "unharmed"
    assert await api.history(pair.sound)


def of(rows: Sequence[Row], id: str) -> list[Row]:
    return [row for row in rows if id in row]


def hit(folders: ProjectFolders, sql: str, pair: Pair) -> None:
    old_databases.execute(folders.database, sql, {"id": pair.hurt} if ":id" in sql else None)
