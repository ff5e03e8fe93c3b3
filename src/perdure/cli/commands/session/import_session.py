"""`perdure import`: stores a Session that `perdure export` printed, here or on another machine.

The events are the Session; the rest is made from them. Importing again stores what is new and
refuses a log that has diverged. An export does not hold the first event, the creation, which is
made from what the export says about the Session.
"""

import os
from typing import Final

from perdure.cli import export_file, options, session_client, terminal
from perdure.cli.problem import Problem
from perdure.cli.session_source import open_store
from perdure.core.export import chain, copy
from perdure.host.environment import Environment
from perdure.schema import ids
from perdure.schema.codec import JsonObject
from perdure.schema.ids import EventID, Seq, SessionID
from perdure.store.log import import_log
from perdure.store.log.event_store import EventStore
from perdure.store.log.import_log import ReplayedEvent, ReplayError

_CREATED: Final = "session.created.1"
_VERSION: Final = "imported"


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "import",
        "Store a Session that `perdure export` printed. Nothing of it runs until it gets a\n"
        "prompt. Importing it again adds what is new. A file that was changed is refused.",
        examples="perdure import session.json\nperdure export ses_... | perdure import -",
    )
    parser.add_argument("file", metavar="FILE", help="file that was exported; `-` reads stdin")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="let the Session work in DIR (default: its directory, or this one if that is absent)",
    )
    parser.add_argument(
        "--copy",
        action="store_true",
        help="store it under new ids, beside the original; the same file gives the same copy",
    )
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="store it even if the file was changed after its export",
    )
    given = parser.parse_args(argv)
    exported, _ = export_file.load(given.file)
    if not given.unverified:
        _require_unchanged(given.file, exported)
    if given.copy:
        exported = _copy(exported)
    environment = options.read_environment(given.data_dir)
    session_id, count = session_client.run(_import(environment, exported, given.directory))
    terminal.print_output(f"{session_id} is imported, {count:,} events\n")
    return 0


async def _import(
    environment: Environment, exported: JsonObject, directory: str | None
) -> tuple[str, int]:
    events = _list_events(exported, directory)
    session_id, total = events[0].session_id, len(events)

    def show_progress(stored: int) -> None:
        terminal.show_status(f"importing {stored:,} of {total:,} events")

    async with open_store(environment) as store:
        if await _is_stored(store, session_id):
            events = events[1:]
        try:
            await import_log.replay_all(store, events, progress=show_progress)
        except ReplayError as error:
            raise Problem(f"{session_id} cannot be imported: {error}") from error
        finally:
            terminal.clear_status()
    return session_id, total


def _require_unchanged(path: str, exported: JsonObject) -> None:
    """An export of an older version has no seal, and nothing to check."""
    if not chain.is_sealed(exported):
        return
    try:
        export_file.verify(path, exported)
    except Problem as problem:
        raise Problem(f"{problem}; `--unverified` imports it all the same") from problem


def _copy(exported: JsonObject) -> JsonObject:
    try:
        return copy.copy(exported)
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> Problem:
    return Problem(f"the export is damaged: {type(error).__name__} {error}")


def _list_events(exported: JsonObject, directory: str | None) -> list[ReplayedEvent]:
    """The events of an export, with the creation before them."""
    try:
        session, events = exported["session"], exported["events"]
        session_id = SessionID(session["id"])
        if not ids.well_formed("ses", session_id):
            raise Problem(f"{terminal.one_line(session_id)} is not the id of a Session")
        replayed = [_to_replayed(session_id, event) for event in events]
        seed = _make_seed(session, replayed, directory or _find_directory(session))
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(error) from error
    created = ReplayedEvent(
        id=EventID(f"evt_{session_id.removeprefix('ses_')}"),
        type=_CREATED,
        seq=Seq(0),
        session_id=session_id,
        data={"sessionID": session_id, "info": seed},
    )
    return [created, *replayed]


def _to_replayed(session_id: SessionID, event: JsonObject) -> ReplayedEvent:
    durable = event["durable"]
    return ReplayedEvent(
        id=EventID(str(event["id"])),
        type=f"{event['type']}.{durable['version']}",
        seq=Seq(int(durable["seq"])),
        session_id=session_id,
        data=event["data"],
    )


def _make_seed(session: JsonObject, events: list[ReplayedEvent], directory: str) -> JsonObject:
    """The Session at its creation. What an event changed later is not part of it."""
    changed = {event.type.rpartition(".")[0] for event in events}
    created = session["time"]["created"]
    nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    seed: JsonObject = {
        "id": session["id"],
        "slug": _VERSION,
        "projectID": session["projectID"],
        "directory": os.path.abspath(directory),
        "path": "",
        "title": session["title"],
        "version": _VERSION,
        "cost": 0,
        "tokens": nothing,
        "time": {"created": created, "updated": created},
    }
    for key in ("agent", "model"):
        if key in session and f"session.next.{key}.switched" not in changed:
            seed[key] = session[key]
    return seed


def _find_directory(session: JsonObject) -> str:
    directory = str(session["location"]["directory"])
    return directory if os.path.isdir(directory) else os.getcwd()


async def _is_stored(store: EventStore, session_id: SessionID) -> bool:
    return await store.latest(session_id) >= 0
