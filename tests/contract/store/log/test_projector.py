"""The rows of the projections are the fold of the log, however it was cut into batches."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.core.context.system_context import ContextEpoch
from perdure.ports import Row, Transaction
from perdure.schema import codec
from perdure.schema.approval.permission import SessionRule
from perdure.schema.errors import PromptConflictError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef, TokenCache, TokenUsage
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import Prompt
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import ModelSubstitute, RevertState
from perdure.schema.session.tool import CallProvider
from perdure.schema.session.usage import SessionBudget
from perdure.store.log import projector
from perdure.store.log.event_store import EventStore
from perdure.store.tables import epoch_table, inbox_table, message_table, session_table
from perdure.store.tables.session_table import SessionFilter
from tests.contract.store.log import folded
from tests.contract.store.log.folded import fold
from tests.fixtures import (
    OTHER,
    SESSION,
    Facts,
    answered,
    append,
    dump,
    opened_store,
    rows,
)
from tests.requirements import requirement


def text_and_tools(facts: Facts) -> list[SessionEvent]:
    native = CallProvider(executed=True, metadata={"p": {"item": "1"}})
    return [
        *answered(facts, "msg_1", "msg_2", "one"),
        facts.step("msg_3", snapshot="before"),
        *facts.reasoning("msg_3", "r", "hm", {"p": {"signature": "s"}}),
        facts.input_started("msg_3", "a"),
        facts.input_started("msg_3", "b"),
        facts.input_started("msg_3", "c"),
        facts.input_ended("msg_3", "a", '{"path":"a"}'),
        facts.called("msg_3", "a", native),
        facts.stamped(
            events.ToolProgressed,
            assistant_message_id=MessageID("msg_3"),
            call_id="a",
            structured={"n": 1},
            content=(),
        ),
        facts.succeeded("msg_3", "a", native),
        facts.tool_failed("msg_3", "a"),
        facts.called("msg_3", "b"),
        facts.tool_failed("msg_3", "b"),
        facts.succeeded("msg_3", "b"),
        facts.tool_failed("msg_3", "c"),
        facts.ended("msg_3", "tool-calls", snapshot="after"),
    ]


def lost_steps(facts: Facts) -> list[SessionEvent]:
    return [
        facts.step("msg_1"),
        facts.input_started("msg_1", "a"),
        facts.step("msg_2"),
        facts.tool_failed("msg_1", "a"),
        facts.failed("msg_2"),
        facts.step("msg_3"),
        facts.ended("msg_unknown"),
        *facts.text("msg_unknown", "t", "nobody's"),
    ]


def asides(facts: Facts) -> list[SessionEvent]:
    retry = events.RetryError(message="busy", is_retryable=True)
    return [
        facts.stamped(events.SyntheticAdded, message_id="msg_1", text="made up"),
        facts.stamped(events.ShellStarted, message_id="msg_2", call_id="x", command="ls"),
        facts.stamped(events.ShellStarted, message_id="msg_3", call_id="y", command="pwd"),
        facts.stamped(events.ShellEnded, call_id="x", output="a"),
        facts.stamped(events.ShellEnded, call_id="unknown", output="b"),
        facts.stamped(events.ShellEnded, call_id="y", output="/"),
        facts.told("msg_4"),
        facts.stamped(events.AgentSwitched, message_id="msg_5", agent="plan"),
        facts.stamped(
            events.ModelSwitched, message_id="msg_6", model=ModelRef(id="m", provider_id="q")
        ),
        facts.stamped(events.Moved, location=LocationRef(directory="/new"), subdirectory="sub"),
        facts.stamped(events.Retried, attempt=1, error=retry),
        facts.stamped(events.CompactionStarted, message_id="msg_7", reason="manual"),
        facts.stamped(events.CompactionReported, outcome="failed", reason="manual"),
        facts.compacted("msg_7"),
    ]


def reverted(facts: Facts) -> list[SessionEvent]:
    staged = RevertState(message_id=MessageID("msg_1"))
    return [
        *answered(facts, "msg_1", "msg_2", "kept"),
        facts.todos("msg_2", "kept"),
        *answered(facts, "msg_3", "msg_4", "gone"),
        facts.todos("msg_4", "gone"),
        # Written late by the message that stays.
        facts.todos("msg_2", "kept", "as well"),
        facts.todos("msg_unknown", "nobody's"),
        facts.admitted("msg_5", "pending", "queue"),
        facts.stamped(events.RevertStaged, revert=staged),
        facts.stamped(events.RevertCleared),
        facts.stamped(events.RevertStaged, revert=staged),
        facts.stamped(events.RevertCommitted, message_id="msg_2"),
        facts.ended("msg_4"),
        *answered(facts, "msg_3", "msg_4", "again"),
        facts.stamped(events.RevertCommitted, message_id="msg_unknown"),
    ]


def changed(facts: Facts) -> list[SessionEvent]:
    said = Prompt(text="said otherwise")
    return [
        facts.admitted("msg_1", "one", "queue"),
        facts.admitted("msg_2", "two", "queue"),
        facts.admitted("msg_3", "three", "steer"),
        facts.stamped(events.PromptRevised, message_id="msg_2", prompt=said, delivery="steer"),
        facts.stamped(
            events.InboxReordered, message_ids=("msg_3", "msg_unknown", "msg_1", "msg_2")
        ),
        facts.stamped(events.PromptCancelled, message_id="msg_1"),
        facts.promoted("msg_2", "said otherwise"),
        # What is settled stays as it is.
        facts.stamped(events.PromptCancelled, message_id="msg_2"),
        facts.stamped(events.PromptRevised, message_id="msg_1", prompt=said, delivery="steer"),
        facts.stamped(events.InboxReordered, message_ids=("msg_3", "msg_1", "msg_2")),
        facts.stamped(
            events.ModelSubstituted,
            substitute=ModelSubstitute(
                model=ModelRef(id="s", provider_id="q"), message="busy", until=9
            ),
        ),
        facts.stamped(events.Renamed, title="Called like this"),
        facts.stamped(events.Archived),
        facts.stamped(events.Unarchived),
        facts.stamped(events.Archived),
        facts.stamped(events.Forked, source="ses_source", seq=3),
        facts.stamped(events.BudgetChanged, budget=SessionBudget(cost=2.0, turns=5)),
        facts.stamped(
            events.RulesChanged,
            rules=(SessionRule(action="bash", resource="rm *", effect="deny", expires=5),),
        ),
        facts.stamped(
            events.Spent,
            purpose="title",
            model=ModelRef(id="m", provider_id="p"),
            cost=0.5,
            tokens=TokenUsage(input=3, output=4, reasoning=1, cache=TokenCache(read=0, write=0)),
        ),
    ]


def left_out(facts: Facts) -> list[SessionEvent]:
    """Pruned, excluded and restored: a result, messages of every kind, and what is not there."""

    def excluded(message_id: str, **call: str) -> SessionEvent:
        return facts.stamped(events.MessageExcluded, message_id=message_id, **call)

    def pruned(message_id: str, call_id: str, **path: str) -> SessionEvent:
        return facts.stamped(
            events.ToolPruned, assistant_message_id=message_id, call_id=call_id, **path
        )

    return [
        facts.admitted("msg_1", "one", "queue"),
        facts.promoted("msg_1", "one"),
        facts.step("msg_2"),
        *(event for call in "abc" for event in (facts.input_started("msg_2", call),)),
        facts.called("msg_2", "a"),
        # A call that is not settled has no result to prune.
        pruned("msg_2", "a", path="/early"),
        facts.succeeded("msg_2", "a"),
        facts.called("msg_2", "b"),
        facts.tool_failed("msg_2", "b"),
        pruned("msg_2", "a", path="/a"),
        pruned("msg_2", "b"),
        pruned("msg_2", "unknown", path="/x"),
        pruned("msg_unknown", "a", path="/x"),
        facts.ended("msg_2"),
        facts.stamped(events.ShellStarted, message_id="msg_3", call_id="x", command="ls"),
        facts.compacted("msg_4"),
        *map(excluded, ("msg_1", "msg_2", "msg_3", "msg_4", "msg_unknown")),
        facts.stamped(events.ShellEnded, call_id="x", output="a"),
        excluded("msg_2", call_id="a"),
        excluded("msg_2", call_id="unknown"),
        excluded("msg_1", call_id="a"),
        facts.stamped(events.MessageRestored, message_id="msg_2"),
        facts.stamped(events.MessageRestored, message_id="msg_2", call_id="b"),
        facts.stamped(events.MessageRestored, message_id="msg_unknown"),
    ]


def legacy(facts: Facts) -> list[SessionEvent]:
    return [facts.promoted("msg_1", "promoted as soon as admitted"), facts.step("msg_2")]


CORPUS: list[Callable[[Facts], list[SessionEvent]]] = [
    text_and_tools,
    lost_steps,
    asides,
    reverted,
    changed,
    left_out,
    legacy,
]


async def projected(store: EventStore) -> dict[str, list[Row]]:
    return {
        "session": await rows(store, "SELECT data FROM session"),
        "session_message": await rows(store, "SELECT seq, data FROM session_message ORDER BY seq"),
        "session_input": [folded.inbox_row(entry) for entry in await admitted(store)],
        "inbox order": await rows(
            store, "SELECT id, cancelled_seq, place FROM session_input ORDER BY admitted_seq"
        ),
        "todo": await rows(store, "SELECT seq, message_id FROM todo ORDER BY seq"),
    }


async def admitted(store: EventStore) -> list[AdmittedPrompt]:
    """Every entry of the inbox, read as the runtime reads it: with the prompt from the log."""

    async def job(tx: Transaction) -> list[AdmittedPrompt]:
        found = await tx.fetch("SELECT id FROM session_input ORDER BY admitted_seq")
        entries = [await inbox_table.get(tx, MessageID(str(row[0]))) for row in found]
        return [entry for entry in entries if entry is not None]

    return await store.database.read(job)


def batches(log: list[SessionEvent], size: int) -> Iterable[list[SessionEvent]]:
    return (log[start : start + size] for start in range(0, len(log), size))


def test_the_corpus_has_every_kind_of_event() -> None:
    seen = {type(event) for make in CORPUS for event in make(Facts())}
    # A deletion leaves no rows to compare.
    assert seen | {events.SessionCreated, events.Deleted} == set(get_args(SessionEvent))


@requirement("S159", "S158")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("make", CORPUS, ids=lambda make: make.__name__)
async def test_the_rows_are_the_fold_and_are_rebuilt_byte_for_byte(
    make: Callable[[Facts], list[SessionEvent]], size: int, store: EventStore
) -> None:
    facts = Facts()
    log = [facts.created(), *make(facts)]
    for batch in batches(log, size):
        await append(store, batch)
    assert await projected(store) == fold(log).rows()
    before = await dump(store)
    assert await projector.rebuild(store.database) == len(log)
    assert await dump(store) == before


async def test_rebuilding_many_sessions_restores_each(store: EventStore) -> None:
    for number, make in enumerate(CORPUS):
        session_id = OTHER if number == 0 else SessionID(f"ses_{number}")
        log = [renamed(event, f"{number}_", session_id) for event in make(Facts(session_id))]
        await append(store, [Facts(session_id).created(), *log], session_id)
    before = await dump(store)
    await store.database.write(lambda tx: tx.execute("DELETE FROM session_message"))
    await store.database.write(lambda tx: tx.execute("UPDATE session SET data = x'00'"))
    await projector.rebuild(store.database)
    assert await dump(store) == before


def renamed(event: SessionEvent, prefix: str, session_id: str) -> SessionEvent:
    """The same fact with message ids of its own: they are unique over all Sessions."""
    text = codec.encode(event).decode().replace('"msg_', f'"msg_{prefix}')
    assert event.session_id == session_id
    return codec.decode(type(event), text)


@st.composite
def logs(draw: st.DrawFn) -> list[SessionEvent]:
    """Valid sequences: ids are new where they must be, everything else may come in any order."""
    facts = Facts()
    log: list[SessionEvent] = [facts.created()]
    pending: list[events.PromptAdmitted] = []
    answers = ["msg_none"]
    kinds = ["admit", "promote", "step", "told", "compact", "revert", "assistant"]
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=25))):
        fresh, owner = f"msg_{number}", draw(st.sampled_from(answers))
        match kind:
            case "admit":
                pending.append(facts.admitted(fresh, f"prompt {number}"))
                log.append(pending[-1])
            case "promote":
                log += [facts.promoted(one.message_id, one.prompt.text) for one in pending[:1]]
                del pending[:1]
            case "step":
                answers.append(fresh)
                log.append(facts.step(fresh))
            case "told":
                log.append(facts.told(fresh))
            case "compact":
                log.append(facts.compacted(fresh))
            case "revert":
                pending.clear()
                log.append(facts.stamped(events.RevertCommitted, message_id=owner))
            case _:
                log += draw(st.lists(assistant_events(facts, owner), max_size=6))
    return log


def assistant_events(facts: Facts, owner: str) -> st.SearchStrategy[SessionEvent]:
    return st.sampled_from(
        [
            *facts.text(owner, "a", "first"),
            *facts.text(owner, "b", "second"),
            *facts.reasoning(owner, "a", "hm"),
            facts.input_started(owner, "x"),
            facts.input_started(owner, "y"),
            facts.input_ended(owner, "x"),
            facts.called(owner, "x"),
            facts.called(owner, "y"),
            facts.succeeded(owner, "x"),
            facts.tool_failed(owner, "x"),
            facts.tool_failed(owner, "y"),
            facts.ended(owner),
            facts.failed(owner),
        ]
    )


@requirement("S159")
@settings(max_examples=60, deadline=None)
@given(logs(), st.integers(1, 9))
def test_any_valid_log_is_projected_to_its_fold(log: list[SessionEvent], size: int) -> None:
    async def check(folder: str) -> None:
        async with opened_store(Path(folder) / "p.db") as store:
            for batch in batches(log, size):
                await append(store, batch)
            assert await projected(store) == fold(log).rows()
            before = await dump(store)
            await projector.rebuild(store.database)
            assert await dump(store) == before

    with TemporaryDirectory() as folder:
        asyncio.run(check(folder))


@requirement("S66", "S67", "S11")
async def test_a_prompt_is_in_the_inbox_until_it_is_in_history(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.admitted("msg_1")])
    assert await rows(store, "SELECT promoted_seq FROM session_input") == [(None,)]
    assert await rows(store, "SELECT * FROM session_message") == []
    await append(store, [facts.promoted("msg_1")])
    assert await rows(store, "SELECT admitted_seq, promoted_seq FROM session_input") == [(1, 2)]
    assert await rows(store, "SELECT id, seq FROM session_message") == [("msg_1", 2)]


@requirement("S67", "S74")
async def test_a_prompt_is_promoted_at_most_once(store: EventStore, facts: Facts) -> None:
    await append(store, [facts.admitted("msg_1"), facts.promoted("msg_1")])
    before = await dump(store)
    with pytest.raises(PromptConflictError):
        await append(store, [facts.promoted("msg_1")])
    assert await dump(store) == before


@requirement("S74")
async def test_a_prompt_id_is_taken_whoever_took_it(store: EventStore, facts: Facts) -> None:
    other = Facts(OTHER)
    await append(store, [facts.admitted("msg_2")])
    await append(store, [other.created()], OTHER)
    with pytest.raises(PromptConflictError):
        await append(store, [other.admitted("msg_2")], OTHER)
    with pytest.raises(PromptConflictError):
        await append(store, [facts.admitted("msg_2")])
    with pytest.raises(PromptConflictError):
        await append(store, [other.promoted("msg_2")], OTHER)


@requirement("S61")
async def test_moving_a_session_ends_its_epoch(store: EventStore, facts: Facts) -> None:
    await store.database.write(
        lambda tx: tx.execute(
            "INSERT INTO session_context_epoch VALUES (:id, 'b', 1, '{}')", {"id": SESSION}
        )
    )
    moved = facts.stamped(events.Moved, location=LocationRef(directory="/elsewhere"))
    await append(store, [moved])
    assert await rows(store, "SELECT * FROM session_context_epoch") == []
    assert await rows(store, "SELECT directory FROM session") == [("/elsewhere",)]


@requirement("S160")
async def test_messages_are_paged_by_their_place_in_the_log(
    store: EventStore, facts: Facts
) -> None:
    backwards = [facts.told(f"msg_{number}") for number in range(5)]
    await append(store, [*reversed(backwards)])

    async def ids(*, newest_first: bool, anchor: int | None) -> list[str]:
        found = await store.database.read(
            lambda tx: message_table.page(
                tx,
                SESSION,
                newest_first=newest_first,
                limit=2,
                anchor=None if anchor is None else Seq(anchor),
            )
        )
        return [row.id for row in found]

    assert await ids(newest_first=False, anchor=None) == ["msg_4", "msg_3"]
    assert await ids(newest_first=False, anchor=2) == ["msg_2", "msg_1"]
    assert await ids(newest_first=True, anchor=None) == ["msg_0", "msg_1"]
    assert await ids(newest_first=True, anchor=2) == ["msg_4"]


@pytest.mark.parametrize(
    ("search", "found"),
    [("100%", 1), ("100_", 0), ("%", 1), ("_", 0), ("\\", 1), ("FIX", 1), ("", 3)],
)
async def test_titles_are_searched_as_they_are_written(
    store: EventStore, search: str, found: int
) -> None:
    for number, title in enumerate(("100% sure", "a \\ b", "fix it")):
        facts = Facts(SessionID(f"ses_{number}"))
        prompt = facts.promoted(f"msg_{number}", title)
        await append(store, [facts.created(), prompt], facts.session_id)
    page = await store.database.read(
        lambda tx: session_table.page(
            tx, SessionFilter(search=search), newest_first=True, limit=9, anchor=None
        )
    )
    assert len(page) == found


@requirement("S61")
async def test_rebuilding_leaves_the_epoch_of_a_moved_session_alone(
    store: EventStore, facts: Facts
) -> None:
    session = facts.session_id
    moved = events.Moved(
        timestamp=2, session_id=session, location=LocationRef(directory="/elsewhere")
    )
    epoch = ContextEpoch(baseline="told", baseline_seq=Seq(1), snapshot="{}")
    await append(store, [moved])
    await store.database.write(lambda tx: epoch_table.put(tx, session, epoch))
    await projector.rebuild(store.database)
    assert await store.database.read(lambda tx: epoch_table.get(tx, session)) == epoch
