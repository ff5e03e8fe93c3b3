"""What must hold after a load, seen over HTTP alone, and in the file that the tools append to.

Each check says in words what is wrong. A log is read through `history`, and by the grammar and the
fold of the test harness; nothing here opens the database.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perdure.schema import codec, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.contract.store.log.folded import Folded
from tests.fixtures import Facts
from tests.harness.checkers.grammar import LogGrammar
from tests.load.clients import Promises
from tests.load.fleet import Fleet

_PAGE: Final = 100


@dataclass(slots=True)
class SeenSession:
    """One Session as the public operations tell of it."""

    id: str
    log: list[tuple[int, SessionEvent]]
    messages: list[JsonObject]
    inbox: list[JsonObject]
    folded: Folded = field(init=False)

    def __post_init__(self) -> None:
        self.folded = Folded()
        # The creation is not public, and no message comes of it.
        self.folded.apply(0, Facts(SessionID(self.id)).created())
        for seq, event in self.log:
            self.folded.apply(seq, event)


async def look(fleet: Fleet) -> list[SeenSession]:
    """Every Session that there is, subagents included."""
    found: list[SeenSession] = []
    for session in await list_sessions(fleet):
        path = f"/api/session/{session}"
        found.append(
            SeenSession(
                id=session,
                log=await _history(fleet, path),
                messages=await _messages(fleet, path),
                inbox=(await fleet.read(f"{path}/inbox"))["data"],
            )
        )
    return found


async def list_sessions(fleet: Fleet) -> list[str]:
    page = await fleet.read("/api/session?limit=200&order=asc")
    found = [session["id"] for session in page["data"]]
    while (cursor := page["cursor"].get("next")) is not None:
        page = await fleet.read(f"/api/session?cursor={cursor}")
        found += [session["id"] for session in page["data"]]
    below: list[str] = list(found)
    for session in below:
        children = (await fleet.read(f"/api/session/{session}/children"))["data"]
        below += [child["id"] for child in children if child["id"] not in below]
    return below


def find_faults(seen: list[SeenSession], promises: Promises, effects: Path) -> Iterator[str]:
    """Everything that is wrong."""
    lines = Counter(effects.read_text(encoding="utf-8").split() if effects.exists() else ())
    for session in seen:
        yield from check_log(session)
        yield from check_messages(session)
    yield from check_prompts(seen, promises)
    yield from check_effects(seen, lines)
    yield from check_approvals(seen, promises, lines)


def check_log(session: SeenSession) -> Iterator[str]:
    """The sequence is gapless from 1, in the order of the grammar, and nothing is open."""
    grammar = LogGrammar(created=True)
    for seq, event in session.log:
        for fault in grammar.read(Seq(seq), event):
            yield f"{session.id} {fault}"
    for fault in grammar.unfinished():
        yield f"{session.id} at the end: {fault}"


def check_messages(session: SeenSession) -> Iterator[str]:
    """The messages are the fold of the events."""
    folded = [
        codec.to_json_value(message)
        for _, message in sorted(session.folded.messages.values(), key=lambda item: item[0])
    ]
    if session.messages != folded:
        ids = [message["id"] for message in session.messages]
        yield f"{session.id}: messages {ids} are not the fold of the events"


def check_prompts(seen: list[SeenSession], promises: Promises) -> Iterator[str]:
    """Every acknowledged prompt has exactly one outcome: answered, cancelled or reverted."""
    by_id = {session.id: session for session in seen}
    for prompt, receipt in promises.receipts.items():
        session = by_id.get(receipt["sessionID"])
        if session is None:
            yield f"{prompt} was acknowledged in a Session that is not there"
            continue
        about = [(seq, event) for seq, event in session.log if _message_id(event) == prompt]
        if not about or about[0][0] != receipt["admittedSeq"]:
            yield f"{prompt} has a receipt and is not in the log at its sequence"
            continue
        yield from _check_outcome(session, MessageID(prompt), promises.texts[prompt], about)


def _check_outcome(
    session: SeenSession,
    prompt: MessageID,
    texts: set[str],
    about: list[tuple[int, SessionEvent]],
) -> Iterator[str]:
    promoted = [(s, e) for s, e in about if isinstance(e, events.PromptPromoted)]
    cancelled = [e for _, e in about if isinstance(e, events.PromptCancelled)]
    reverted = prompt not in session.folded.inbox
    if len(promoted) + len(cancelled) > 1:
        yield f"{prompt} has {len(promoted)} promotions and {len(cancelled)} cancellations"
    if not promoted and not cancelled and not reverted:
        yield f"{prompt} was acknowledged, and nothing came of it"
    for seq, event in promoted:
        if event.prompt.text not in texts:
            yield f"{prompt} was promoted as {event.prompt.text!r}, which no client sent"
        after = (e for s, e in session.log if s > seq)
        answers = events.StepStarted | events.RevertCommitted
        if not any(isinstance(e, answers) for e in after):
            yield f"{prompt} of {session.id} was promoted, and no step followed"


def check_effects(seen: list[SeenSession], lines: Counter[str]) -> Iterator[str]:
    """No effect twice, and one for each command that is recorded as a success with exit code 0.

    A line that a revert of the command's own Session has taken back is gone, and no other is.
    """
    for line, count in lines.items():
        if count > 1:
            yield f"the effect {line} happened {count} times"
    taken: set[str] = set()
    for session in seen:
        gone, cleared = _taken_back(session)
        own = {call.line for call in _commands(session)}
        taken |= (gone | cleared) & own
        for line in gone & own & lines.keys():
            yield f"a revert of {session.id} took {line} back, and it is there"
    for session in seen:
        for call in _commands(session):
            if call.status == "success" and lines[call.line] != 1 and call.line not in taken:
                yield f"{call.line} of {session.id} is a success with {lines[call.line]} effects"


def _taken_back(session: SeenSession) -> tuple[set[str], set[str]]:
    """The lines that reverts of a Session took back, as they say themselves.

    Those of a revert that was cleared may be there again: not if the file was changed meanwhile.
    """
    gone: set[str] = set()
    cleared: set[str] = set()
    staged: set[str] = set()
    for _, event in session.log:
        match event:
            case events.RevertStaged(revert=revert):
                # Staged again, it says what is taken back in all.
                cleared |= staged
                staged = {line for file in revert.files or () for line in _removed(file.patch)}
            case events.RevertCleared():
                cleared |= staged
                staged = set()
            case events.RevertCommitted():
                gone |= staged
                staged = set()
            case _:
                pass
    return gone | staged, cleared - gone - staged


def _removed(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        if line.startswith("-") and not line.startswith("---"):
            yield line[1:]


def check_approvals(
    seen: list[SeenSession], promises: Promises, lines: Counter[str]
) -> Iterator[str]:
    """What was allowed ran once or visibly failed; what was refused did not run."""
    commands = {
        (session.id, call.message, call.id): call for session in seen for call in _commands(session)
    }
    for request, approval in promises.approvals.items():
        call = commands.get((approval.session, approval.message, approval.call))
        if call is None:
            continue
        if call.status is None:
            yield f"{request} was answered, and call {call.id} of {call.message} is still open"
        if approval.reply == "reject" and (call.status == "success" or lines[call.line]):
            yield f"{request} was refused, and {call.line} ran"
        if lines[call.line] > 1:
            yield f"{request} was allowed once, and {call.line} ran {lines[call.line]} times"


@dataclass(slots=True)
class _Command:
    """A foreground command that appends a line."""

    message: str
    id: str
    line: str
    status: str | None = None


def _commands(session: SeenSession) -> list[_Command]:
    found: dict[tuple[str, str], _Command] = {}
    for _, event in session.log:
        if not isinstance(event, events.ToolFact):
            continue
        key = (event.assistant_message_id, event.call_id)
        match event:
            case events.ToolCalled(tool="bash", input=given) if not given.get("background"):
                line = str(given["command"]).partition("echo ")[2].split()[0]
                found[key] = _Command(*key, line)
            case events.ToolSucceeded(structured=told) if key in found:
                # A command that a signal ended is told with its exit code, and has no outcome.
                found[key].status = "success" if told.get("exit") == 0 else f"{told}"
            case events.ToolFailed() if key in found:
                found[key].status = "failed"
            case _:
                pass
    return list(found.values())


def _message_id(event: SessionEvent) -> str | None:
    if isinstance(event, events.PromptAdmitted | events.PromptPromoted | events.PromptCancelled):
        return event.message_id
    return None


async def _history(fleet: Fleet, path: str) -> list[tuple[int, SessionEvent]]:
    found: list[tuple[int, SessionEvent]] = []
    after, more = 0, True
    while more:
        page = await fleet.read(f"{path}/history?limit={_PAGE}&after={after}")
        for item in page["data"]:
            after = item["durable"]["seq"]
            stored = f"{item['type']}.{item['durable']['version']}"
            found.append((after, manifest.decode(stored, codec.encode(item["data"]))))
        more = page["hasMore"]
    return found


async def _messages(fleet: Fleet, path: str) -> list[JsonObject]:
    page = await fleet.read(f"{path}/message?limit=200&order=asc")
    found: list[JsonObject] = page["data"]
    while (cursor := page["cursor"].get("next")) is not None:
        page = await fleet.read(f"{path}/message?cursor={cursor}")
        found += page["data"]
    return found
