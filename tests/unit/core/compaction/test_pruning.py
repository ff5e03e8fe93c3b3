"""Which results are pruned: old ones first, newer ones if need be, and never what must stay."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from perdure.core import limits
from perdure.core.compaction import plan, pruning
from perdure.core.session import omission
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.message import (
    AssistantMessage,
    Created,
    SessionMessage,
    Span,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    PartProvider,
    RunningState,
    TextContent,
    ToolState,
    error_info,
)
from tests.fixtures import MODEL, SESSION

LARGE = 4_000


def result(tokens: int) -> ToolState:
    return CompletedState(
        input={}, content=(TextContent(text="x" * 4 * tokens),), output_paths=(), structured={}
    )


def call(
    state: ToolState, name: str = "c", *, hosted: bool = False, time: ToolTime | None = None
) -> ToolPart:
    return ToolPart(
        id=ToolCallID(name),
        name="read",
        state=state,
        time=time or ToolTime(created=1),
        provider=PartProvider(executed=True) if hosted else UNSET,
    )


def answer(number: int, *parts: ToolPart) -> AssistantMessage:
    return AssistantMessage(
        id=MessageID(f"msg_{number}"),
        time=Span(created=1),
        agent="build",
        model=MODEL,
        content=parts,
    )


def prompt(tokens: int = 1) -> UserMessage:
    return UserMessage(id=MessageID("msg_u"), time=Created(created=1), text="x" * 4 * tokens)


def pruned(message: SessionMessage, chosen: tuple[pruning.Prunable, ...]) -> SessionMessage:
    """The message with what was chosen of it pruned, as the fold does it."""
    parts = {found.part.id for found in chosen if found.message_id == message.id}
    if not isinstance(message, AssistantMessage):
        return message
    content = tuple(
        omission.prune(
            part,
            events.ToolPruned(
                timestamp=9,
                session_id=SESSION,
                assistant_message_id=message.id,
                call_id=part.id,
                path="/data/tool-output/tool_" + "0" * 26,
            ),
        )
        if isinstance(part, ToolPart) and part.id in parts
        else part
        for part in message.content
    )
    return AssistantMessage(
        id=message.id, time=message.time, agent="build", model=MODEL, content=content
    )


def enough(history: Sequence[SessionMessage], room: int, keep: int) -> tuple[pruning.Prunable, ...]:
    tokens = plan.measure(history, MODEL)
    return pruning.choose_enough(history, tokens, room=room, keep_tokens=keep)


def test_old_results_go_all_at_once_and_the_newest_stay() -> None:
    history = [answer(number, call(result(LARGE))) for number in range(5)]
    chosen = enough(history, room=4 * LARGE, keep=2 * LARGE + 100)
    assert [found.message_id for found in chosen] == ["msg_0", "msg_1", "msg_2"]


def test_newer_results_go_if_the_old_ones_are_not_enough_the_oldest_of_them_first() -> None:
    history = [answer(number, call(result(LARGE))) for number in range(5)]
    chosen = enough(history, room=LARGE + 1_000, keep=2 * LARGE + 100)
    assert [found.message_id for found in chosen] == ["msg_0", "msg_1", "msg_2", "msg_3"]


def test_where_pruning_cannot_be_enough_nothing_is_pruned() -> None:
    assert enough([prompt(LARGE), answer(1, call(result(LARGE)))], room=LARGE, keep=0) == ()


def test_only_settled_large_results_of_our_own_tools_are_pruned() -> None:
    running = RunningState(input={}, structured={}, content=(TextContent(text="x" * 99_999),))
    failed = ErrorState(input={}, content=(), structured={}, error=error_info("x" * 4 * LARGE))
    excluded = answer(9, call(result(LARGE)))
    history = [
        answer(1, call(result(LARGE), "hosted", hosted=True)),
        answer(2, call(running, "running")),
        answer(3, call(result(LARGE), "pruned", time=ToolTime(created=1, pruned=2))),
        answer(4, call(result(LARGE), "excluded", time=ToolTime(created=1, excluded=2))),
        answer(5, call(result(limits.PRUNED_SAVING_TOKENS_MIN), "small")),
        answer(6, call(failed, "failed"), call(result(LARGE), "done")),
        AssistantMessage(
            id=excluded.id,
            time=Span(created=1, excluded=2),
            agent="build",
            model=MODEL,
            content=excluded.content,
        ),
    ]
    tokens = plan.measure(history, MODEL)
    chosen = pruning.choose_old(history, tokens, keep_tokens=0)
    assert [found.part.id for found in chosen] == ["failed", "done"]


sizes = st.lists(
    st.lists(st.integers(0, 3 * LARGE), min_size=1, max_size=4), min_size=1, max_size=8
)


@given(sizes=sizes, room=st.integers(600, 40_000), keep=st.integers(0, 20_000))
def test_what_is_chosen_makes_the_room_and_saves_what_it_says(
    sizes: list[list[int]], room: int, keep: int
) -> None:
    history: list[SessionMessage] = [
        answer(number, *(call(result(size), f"c{at}") for at, size in enumerate(of_message)))
        for number, of_message in enumerate(sizes)
    ]
    chosen = enough(history, room, keep)
    assert enough(history, room, keep) == chosen
    after = [pruned(message, chosen) for message in history]
    saved = sum(plan.measure(history, MODEL)) - sum(plan.measure(after, MODEL))
    assert saved >= sum(found.saves for found in chosen)
    if chosen:
        assert sum(plan.measure(after, MODEL)) <= room
        # A message without a chosen result is the same.
        changed = {found.message_id for found in chosen}
        assert all(a == b for a, b in zip(history, after, strict=True) if a.id not in changed)
