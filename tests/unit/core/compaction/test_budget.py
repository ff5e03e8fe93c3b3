"""How large a request is, and how large it may be."""

import pytest
from msgspec import UNSET

from perdure.core import limits
from perdure.core.request import token_budget
from perdure.core.request.token_budget import ConversationSize, Demand
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.request import ToolDefinition
from perdure.schema.models.model import ModelLimit, TokenCache, TokenUsage


def usage(tokens: int) -> TokenUsage:
    """Spread over every kind of token there is."""
    cache = TokenCache(read=tokens // 5, write=tokens // 5)
    rest = tokens - 4 * (tokens // 5)
    return TokenUsage(input=rest, output=tokens // 5, reasoning=tokens // 5, cache=cache)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 0),
        ("ab", 1),
        ("abcdef", 2),
        ("\u00e9" * 4, 1),
        ("\U0001f600" * 4, 2),
        ("x" * 10**6, 250_000),
    ],
)
def test_tokens_are_estimated_from_the_length_of_the_text(text: str, tokens: int) -> None:
    assert token_budget.estimate(text) == tokens


@pytest.mark.parametrize(
    ("context", "output", "input_max", "buffer", "configured", "window"),
    [
        (0, 0, None, 20_000, None, 0),
        (200_000, 32_000, None, 20_000, None, 168_000),
        (200_000, 8_000, None, 20_000, None, 180_000),
        (200_000, 64_000, None, 20_000, 4_000, 180_000),
        (400_000, 128_000, 200_000, 20_000, None, 200_000),
        (8_000, 1_000, None, 20_000, None, 6_000),
        (8_000, 8_000, None, 20_000, None, 4_000),
        (100_000, 0, None, 0, None, 100_000),
    ],
)
def test_a_request_leaves_room_for_the_answer(
    context: int,
    output: int,
    input_max: int | None,
    buffer: int,
    configured: int | None,
    window: int,
) -> None:
    limit = ModelLimit(
        context=context, output=output, input=UNSET if input_max is None else input_max
    )
    found = token_budget.window(limit, buffer_tokens=buffer, output_tokens=configured)
    assert found == window


def test_what_the_provider_counted_stands_and_what_is_new_is_added() -> None:
    size = ConversationSize().plus(900).counted(usage(1_000), since=50).plus(200)
    assert Demand(fixed=100, conversation=size).tokens == 1_000 + 50 + 200


def test_without_a_count_everything_is_estimated() -> None:
    size = ConversationSize().plus(900).plus(200)
    assert Demand(fixed=100, conversation=size).tokens == 1_200


def test_a_count_that_cannot_be_right_is_not_believed() -> None:
    size = ConversationSize().plus(40_000).counted(usage(150), since=0)
    assert Demand(fixed=1_000, conversation=size).tokens == 41_000


@pytest.mark.parametrize("counted", [500, 1_000, 2_000, 3_000])
def test_room_is_smaller_where_the_provider_counts_more_than_we(counted: int) -> None:
    size = ConversationSize(estimated=900, reported=counted)
    demand = Demand(fixed=100, conversation=size)
    room = token_budget.compaction_target(demand, 1_000)
    # What fills the room is then counted as at most four fifths of the window.
    assert (100 + room) * max(counted, 1_000) // 1_000 <= 800


def test_results_are_new_to_the_provider_that_asked_for_them() -> None:
    call = ToolCallPart("c", "read", {"path": "a" * 400})
    text = ToolResultPart("c", "read", ToolResult("text", "y" * 4_000))
    lowered = (LLMMessage("assistant", (call,)), LLMMessage("tool", (text,)))
    assert 1_000 <= token_budget.estimate_results(lowered) < 1_010
    assert token_budget.estimate_messages(lowered) > token_budget.estimate_results(lowered) + 100


def test_an_image_counts_by_what_it_shows_and_not_by_its_bytes() -> None:
    image = MediaPart("image/png", "data:image/png;base64," + "A" * 1_000_000)
    seen = ToolResultPart("c", "read", ToolResult("content", [TextPart("x" * 40), image]))
    for message in (LLMMessage("user", (image,)), LLMMessage("tool", (seen,))):
        assert (
            limits.MEDIA_TOKENS
            <= token_budget.estimate_messages([message])
            < 2 * limits.MEDIA_TOKENS
        )


def test_tools_and_system_texts_are_part_of_every_request() -> None:
    tool = ToolDefinition("read", "d" * 400, {"type": "object", "x": "y" * 400})
    assert 300 < token_budget.estimate_fixed(("s" * 400,), (tool,)) < 330


@pytest.mark.parametrize(
    ("fixed", "said", "window", "due"),
    [
        (1_000, 9_000, 10_000, False),
        (1_000, 9_001, 10_000, True),
        (1_000, 10**9, 0, False),
        # All but the conversation takes the room: condensing it would not end.
        (9_900, 9_000, 10_000, False),
    ],
)
def test_a_compaction_is_due_when_the_request_is_too_large_and_it_can_help(
    fixed: int, said: int, window: int, due: bool
) -> None:
    demand = Demand(fixed=fixed, conversation=ConversationSize(estimated=said))
    room = token_budget.due_compaction_target(demand, window)
    assert room == (token_budget.compaction_target(demand, window) if due else None)
