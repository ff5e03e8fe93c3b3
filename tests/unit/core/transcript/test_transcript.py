"""A transcript equals what the server would tell, whichever part of the log it was made from."""

from collections.abc import Callable

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.transcript import change as changes
from perdure.core.transcript.transcript import Transcript
from perdure.schema.ids import MessageID, Seq
from perdure.schema.live_event import ReasoningDelta, StatusChanged, TextDelta, ToolInputDelta
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage, TextPart, ToolPart
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.snapshot import EarlierMessages, SessionSnapshot
from perdure.schema.session.status import SessionBusy
from perdure.schema.session.tool import PendingState
from tests.contract.store.log.folded import Folded, fold
from tests.contract.store.log.test_projector import CORPUS
from tests.fixtures import SESSION, Facts, answered


def snapshot(log: list[SessionEvent]) -> SessionSnapshot:
    folded = fold(log)
    assert folded.session is not None
    in_order = sorted(folded.messages.values(), key=lambda item: item[0])
    return SessionSnapshot(
        session=folded.session,
        messages=tuple(message for _, message in in_order),
        inbox=pending(folded),
        seq=Seq(len(log) - 1),
        cursor=EarlierMessages(),
    )


def pending(folded: Folded) -> tuple[AdmittedPrompt, ...]:
    waiting = [
        entry
        for entry in folded.inbox.values()
        if entry.promoted_seq is UNSET and entry.id not in folded.cancelled
    ]
    waiting.sort(key=lambda entry: (entry.delivery == "queue", folded.places[entry.id]))
    return tuple(waiting)


def follow(transcript: Transcript, log: list[SessionEvent]) -> list[changes.Change]:
    found: list[changes.Change] = []
    for seq, event in enumerate(log):
        found += transcript.apply_durable(Seq(seq), event)
    return found


@pytest.mark.parametrize("make", CORPUS, ids=lambda make: make.__name__)
def test_a_snapshot_and_the_events_after_it_are_the_next_snapshot(
    make: Callable[[Facts], list[SessionEvent]],
) -> None:
    facts = Facts()
    log = [facts.created(), *make(facts)]
    for start in range(1, len(log) + 1):
        transcript = Transcript(snapshot(log[:start]))
        for end in range(start, len(log) + 1):
            if end > start:
                transcript.apply_durable(Seq(end - 1), log[end - 1])
            wanted = snapshot(log[:end])
            assert tuple(transcript.messages.values()) == wanted.messages
            assert transcript.session == wanted.session
            assert transcript.seq == wanted.seq
            if transcript.is_stale:
                break
            # A snapshot does not tell the places that a user's reordering gave.
            if not any(isinstance(event, events.InboxReordered) for event in log[:start]):
                assert transcript.inbox == wanted.inbox


def test_events_are_taken_once_and_in_order() -> None:
    facts = Facts()
    log = [facts.created(), *answered(facts, "msg_1", "msg_2", "one")]
    transcript = Transcript(snapshot(log[:1]))
    assert transcript.apply_durable(Seq(3), log[3]) == ()
    follow(transcript, log)
    assert follow(transcript, log) == []
    assert tuple(transcript.messages.values()) == snapshot(log).messages


def test_an_event_of_a_newer_version_is_passed_over() -> None:
    facts = Facts()
    transcript = Transcript(snapshot([facts.created()]))
    assert transcript.apply_durable(Seq(1), None) == ()
    assert transcript.apply_durable(Seq(2), facts.told("msg_1")) != ()


def text_delta(text: str, cursor: int, *, message: str = "msg_1", part: str = "t") -> TextDelta:
    return TextDelta(
        timestamp=1,
        session_id=SESSION,
        assistant_message_id=MessageID(message),
        text_id=part,
        delta=text,
        cursor=cursor,
    )


def open_text() -> tuple[Transcript, list[SessionEvent]]:
    facts = Facts()
    log = [
        facts.created(),
        facts.step("msg_1"),
        *facts.text("msg_1", "t", "one two three"),
        facts.ended("msg_1"),
    ]
    transcript = Transcript(snapshot(log[:1]))
    follow(transcript, log[:3])
    return transcript, log


def appended(found: tuple[changes.Change, ...]) -> str:
    return "".join(c.text for c in found if isinstance(c, changes.TextAppended))


def test_fragments_make_the_text_and_its_end_adds_nothing() -> None:
    transcript, log = open_text()
    assert appended(transcript.apply_live(text_delta("one ", 1))) == "one "
    assert appended(transcript.apply_live(text_delta("two three", 2))) == "two three"
    answer = transcript.messages[MessageID("msg_1")]
    assert isinstance(answer, AssistantMessage)
    assert answer.content == (TextPart(id="t", text="one two three", cursor=2),)
    ended = transcript.apply_durable(Seq(3), log[3])
    part = TextPart(id="t", text="one two three")
    assert ended == (changes.PartChanged(MessageID("msg_1"), part),)


@pytest.mark.parametrize("cursors", [(), (1,), (2,), (1, 1), (1, 3), (3, 1), (1, 2)])
def test_the_end_of_a_text_brings_what_was_lost_of_it(cursors: tuple[int, ...]) -> None:
    transcript, log = open_text()
    words = {1: "one ", 2: "two ", 3: "three"}
    shown = "".join(appended(transcript.apply_live(text_delta(words[c], c))) for c in cursors)
    shown += appended(transcript.apply_durable(Seq(3), log[3]))
    assert shown == "one two three"


def test_a_text_that_ends_otherwise_than_it_was_streamed_is_shown_anew() -> None:
    transcript, log = open_text()
    transcript.apply_live(text_delta("something else", 1))
    (changed,) = transcript.apply_durable(Seq(3), log[3])
    assert isinstance(changed, changes.PartChanged)
    assert changed.is_rewritten


def test_a_client_that_joins_goes_on_after_the_cursor_of_the_snapshot() -> None:
    facts = Facts()
    log = [facts.created(), facts.step("msg_1"), *facts.text("msg_1", "t", "one two")]
    taken = snapshot(log[:3])
    (answer,) = taken.messages
    assert isinstance(answer, AssistantMessage)
    streaming = replace(answer, content=(TextPart(id="t", text="one ", cursor=4),))
    transcript = Transcript(replace(taken, messages=(streaming,)))
    assert transcript.apply_live(text_delta("one ", 4)) == ()
    assert appended(transcript.apply_live(text_delta("tw", 5))) == "tw"
    assert appended(transcript.apply_durable(Seq(3), log[3])) == "o"


@pytest.mark.parametrize(
    "delta",
    [
        text_delta("x", 1, message="msg_other"),
        text_delta("x", 1, part="other"),
        ReasoningDelta(1, SESSION, MessageID("msg_1"), "t", "x", 1),
    ],
)
def test_fragments_of_unknown_parts_change_nothing(delta: TextDelta) -> None:
    transcript, _ = open_text()
    before = dict(transcript.messages)
    assert transcript.apply_live(delta) == ()
    assert transcript.messages == before


def test_the_input_of_a_call_streams_until_it_is_called() -> None:
    facts = Facts()
    log: list[SessionEvent] = [
        facts.created(),
        facts.step("msg_1"),
        facts.input_started("msg_1", "a"),
    ]
    transcript = Transcript(snapshot(log))
    # A snapshot without cursors: the fragments before it are lost, the call tells the input.
    follow(transcript, [*log, facts.input_started("msg_1", "b")])
    delta = ToolInputDelta(1, SESSION, MessageID("msg_1"), events.ToolCallID("b"), '{"pa', 1)
    assert appended(transcript.apply_live(delta)) == '{"pa'
    answer = transcript.messages[MessageID("msg_1")]
    assert isinstance(answer, AssistantMessage)
    part = answer.content[1]
    assert isinstance(part, ToolPart)
    assert part.state == PendingState(input='{"pa')
    (called,) = transcript.apply_durable(Seq(4), facts.called("msg_1", "b"))
    assert isinstance(called, changes.PartChanged)
    assert called.part.cursor is UNSET


def test_a_revert_behind_the_first_known_message_removes_all_that_is_known() -> None:
    facts = Facts()
    log = [facts.created(), *answered(facts, "msg_1", "msg_2", "one")]
    taken = replace(snapshot(log), cursor=EarlierMessages(previous="earlier"))
    reverted = facts.stamped(events.RevertCommitted, message_id="msg_0")
    transcript = Transcript(taken)
    found = transcript.apply_durable(Seq(len(log)), reverted)
    assert found[0] == changes.MessagesRemoved((MessageID("msg_1"), MessageID("msg_2")))
    whole = Transcript(taken)
    whole.prepend((), is_first_page=True)
    assert whole.apply_durable(Seq(len(log)), reverted)[0] == changes.MessagesRemoved(())


def test_the_status_is_that_of_this_session() -> None:
    transcript, _ = open_text()
    busy = StatusChanged(session_id=SESSION, status=SessionBusy())
    assert transcript.apply_live(busy) == (changes.StatusReported(SessionBusy()),)
    assert transcript.apply_live(replace(busy, session_id="ses_other")) == ()
    assert transcript.status == SessionBusy()
