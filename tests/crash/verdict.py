"""Checks a site on which processes were killed: right after a crash, and at the end.

The promises are those of the simulation's checkers. Added here is what the database does not know:
receipts that were given, events that were announced, effects that happened, the run without a
crash.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from perdure.schema import codec
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.store.database.sqlite_connection import Connection
from tests.crash import log_summary
from tests.crash.crash_site import CrashSite
from tests.crash.log_summary import LogSummary
from tests.crash.script import FULL, GRANTED_FILE, GRANTED_TEXT, LINES, SESSION, WRITE_CALL
from tests.harness.checkers import rows
from tests.harness.checkers.checker import Checker, Seen
from tests.harness.checkers.grammar import LogsFollowTheGrammar
from tests.harness.checkers.inbox import PromptsArePromotedOnce
from tests.harness.checkers.ledger import Ledger, LoggedEvent
from tests.harness.checkers.recovery import MarksEndWithTheirRuns
from tests.harness.checkers.requests import SnapshotEqualsTold
from tests.harness.checkers.rows import GaplessSequence, MessagesTellTheLog, ProjectionsEqualFold
from tests.harness.checkers.runs import (
    CallsAreSettledOnce,
    PromptsAreAnswered,
    RequestsBelongToOpenCalls,
)
from tests.harness.checkers.witness import CallKey, Effect, Request
from tests.harness.simulation.clients import Reader, SentPrompt
from tests.harness.simulation.machine import Process
from tests.harness.simulation.unasked import UnaskedPrompts
from tests.support import database_check


@dataclass(frozen=True, slots=True)
class Remains:
    """The log as a process left it."""

    log: list[LoggedEvent]

    @property
    def written(self) -> list[tuple[object, ...]]:
        """What the rows of the log hold."""
        return [
            (item.session_id, item.seq, item.id, type(item.event), item.data) for item in self.log
        ]

    @property
    def summary(self) -> LogSummary:
        return log_summary.tell(item.event for item in self.log)


@dataclass(slots=True)
class NoWitness:
    """A witness without observations: the processes are dead, so only records are checked."""

    effects: dict[CallKey, Effect] = field(default_factory=dict[CallKey, Effect])
    requests: list[Request] = field(default_factory=list[Request])
    excused: dict[SessionID, Seq] = field(default_factory=dict[SessionID, Seq])


@dataclass(slots=True)
class LeftMachine:
    """Implements checker.SeenMachine."""

    ledger: Ledger
    witness: NoWitness = field(default_factory=NoWitness)
    processes: list[Process] = field(default_factory=list[Process])


@dataclass(slots=True)
class LeftClients:
    """Implements checker.SeenClients: those who were given receipts."""

    machine: LeftMachine
    prompts: dict[MessageID, SentPrompt]
    readers: list[Reader] = field(default_factory=list[Reader])

    @property
    def unasked(self) -> UnaskedPrompts:
        return UnaskedPrompts(self.machine.ledger)


def after_death(site: CrashSite, before: Remains | None) -> tuple[Remains, list[str]]:
    """What a killed process left, and what is wrong with it."""
    if not site.database.exists():
        return Remains([]), []
    with _copied(site) as database, closing(Ledger(database)) as ledger:
        # A death before the migration leaves a file without tables.
        tables = ledger.fetch("SELECT 1 FROM sqlite_schema WHERE name = 'event'")
        remains = Remains(ledger.new_events() if tables else [])
    return remains, [*_kept(before, remains), *_promised(site, remains)]


def left(site: CrashSite) -> dict[str, object]:
    """Everything that a process left, by name: the rows of each table, the text of other files."""
    files = [path for path in site.root.rglob("*") if path.is_file()]
    found: dict[str, object] = {
        str(path.relative_to(site.root)): None if _is_its_own(site, path) else path.read_bytes()
        for path in files
    }
    if site.database.exists():
        with _copied(site) as database:
            found |= database_check.dump(Path(database))
    return found


def _is_its_own(site: CrashSite, path: Path) -> bool:
    """Whether it is a file in which SQLite keeps salts, or a process its own number."""
    return path.name.startswith(site.database.name) or path.suffix == ".lock"


@contextmanager
def _copied(site: CrashSite) -> Generator[str]:
    """A copy of the database: to open the file itself would already recover it."""
    with tempfile.TemporaryDirectory(dir=site.root.parent) as copy:
        for file in site.data.glob(f"{site.database.name}*"):
            shutil.copy(file, copy)
        yield f"{copy}/{site.database.name}"


def at_the_end(
    site: CrashSite, whole: LogSummary | None, deaths: list[Remains]
) -> tuple[Remains, list[str]]:
    """What the last run left, and what is wrong with it. `whole` is the run without a crash."""
    with closing(Ledger(str(site.database))) as ledger:
        remains = Remains(ledger.new_events())
        wrong = [
            *_kept(deaths[-1] if deaths else None, remains),
            *_promised(site, remains),
            *_checked(site, ledger, remains),
            *_effects(site, remains),
            *_requests(site),
        ]
    if whole is not None and not wrong:
        wrong += _compared(remains.summary, whole, deaths)
    return remains, wrong


# ---- what was known outside ---------------------------------------------------------------------


def _kept(before: Remains | None, now: Remains) -> Iterator[str]:
    """The log only grows."""
    known = [] if before is None else before.written
    if now.written[: len(known)] != known:
        yield f"the log changed: it had {len(known)} events before the restart"


def _promised(site: CrashSite, remains: Remains) -> Iterator[str]:
    """Everything that a client or listener was told is in the log."""
    logged = {f"{item.seq} {item.id}" for item in remains.log}
    for line in site.told.read_text().splitlines():
        if line not in logged:
            yield f"event {line} was announced and is not in the log"
    admitted = Counter(
        (item.event.message_id, item.seq)
        for item in remains.log
        if isinstance(item.event, events.PromptAdmitted)
    )
    for receipt in _receipts(site):
        if admitted[receipt.id, receipt.admitted_seq] != 1:
            yield f"{receipt.id} has a receipt and no admission at {receipt.admitted_seq}"


def _receipts(site: CrashSite) -> list[AdmittedPrompt]:
    lines = site.receipts.read_bytes().splitlines()
    return [codec.decode(AdmittedPrompt, line) for line in lines]


def _effects(site: CrashSite, remains: Remains) -> Iterator[str]:
    """Each effect once, of a recorded call; each success with its effect."""
    effects = Counter(site.effects.read_text().splitlines())
    called: set[str] = set()
    for item in remains.log:
        match item.event:
            case events.ToolCalled(assistant_message_id=step, call_id=call, tool="note"):
                called.add(f"{step} {call}")
            case events.ToolSucceeded(call_id=call) if call == WRITE_CALL:
                if (site.project / GRANTED_FILE).read_text() != GRANTED_TEXT:
                    yield "the write succeeded, and its file is another"
            case events.ToolSucceeded(assistant_message_id=step, call_id=call):
                if not effects[f"{step} {call}"]:
                    yield f"call {call} succeeded without its effect"
            case _:
                pass
    for effect, times in effects.items():
        if times != 1:
            yield f"the effect of {effect} was made {times} times"
        if effect not in called:
            yield f"the effect of {effect} was made without a record of its call"


def _requests(site: CrashSite) -> Iterator[str]:
    """The same request twice only when a person wanted that."""
    asked = Counter(site.asked.read_text().splitlines())
    again = sum(times - 1 for times in asked.values())
    decided = len(site.decided.read_text().splitlines())
    if again > decided:
        yield f"{again} requests were sent again, and a person wanted {decided} of them"


# ---- what the log and the rows promise ----------------------------------------------------------


def _checked(site: CrashSite, ledger: Ledger, remains: Remains) -> Iterator[str]:
    sound = ledger.fetch("PRAGMA integrity_check")
    if sound != [("ok",)]:
        yield f"the file is damaged: {sound}"
    seen = Seen(LeftClients(LeftMachine(ledger), _sent(site)), remains.log, at_rest=True)
    with _scratch() as scratch:
        for checker in _checkers(scratch):
            if wrong := [f"{checker.promise}: {what}" for what in checker.check(seen)]:
                yield from wrong
                return


def _checkers(scratch: Connection) -> tuple[Checker, ...]:
    """In this order: a log that breaks the first of them may be one that cannot be folded."""
    return (
        GaplessSequence(),
        PromptsArePromotedOnce(),
        CallsAreSettledOnce(),
        RequestsBelongToOpenCalls(),
        PromptsAreAnswered(),
        MarksEndWithTheirRuns(),
        LogsFollowTheGrammar(),
        ProjectionsEqualFold(scratch),
        MessagesTellTheLog(),
        SnapshotEqualsTold(),
    )


@contextmanager
def _scratch() -> Generator[Connection]:
    """A database in memory, empty at each entry, whose statements are prepared once."""
    connection = _one_scratch()
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.execute("ROLLBACK")


@cache
def _one_scratch() -> Connection:
    return rows.new_scratch()


def _sent(site: CrashSite) -> dict[MessageID, SentPrompt]:
    receipts = {receipt.id: receipt for receipt in _receipts(site)}
    return {
        line.id: SentPrompt(
            SESSION, line.id, line.text, line.delivery, receipt=receipts.get(line.id), woken=True
        )
        for line in LINES
    }


# ---- against the run without a crash ------------------------------------------------------------


def _compared(found: LogSummary, whole: LogSummary, deaths: list[Remains]) -> Iterator[str]:
    for name in ("asked", "turned", "told", "summaries"):
        if getattr(found, name) != getattr(whole, name):
            yield f"{name}: {getattr(found, name)} instead of {getattr(whole, name)}"
    if found.room_made > whole.room_made:
        yield f"room was made {found.room_made} times"
    if found.room_made < whole.room_made and FULL.id not in found.cut(whole):
        yield "what did not fit was answered, and no room was made for it"
    if found.summaries_begun > whole.summaries_begun + len(deaths):
        yield f"{found.summaries_begun} compactions were begun"
    # A crash can cut the one answer that was under way, and no other.
    under_way = {death.summary.latest for death in deaths}
    for prompt in found.cut(whole):
        answer = found.answers[prompt]
        if prompt not in under_way:
            yield f"the answer to {prompt} differs, and no crash came between: {answer}"
        elif not log_summary.is_cut(answer, whole.answers[prompt]):
            yield f"the answer to {prompt} is no beginning of the whole one: {answer}"
