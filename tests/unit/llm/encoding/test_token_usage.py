"""Counts of tokens in the spelling of each server, and what they add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.llm.encoding import token_usage
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

COUNT = st.integers(min_value=0, max_value=10**9)


def read(counts: JsonValue) -> Usage | None:
    return token_usage.read(codec.encode(counts))


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 150,
                "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(input=50, output=40, reasoning=10, cache_read=30, cache_write=20),
            id="openai-chat",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "total_tokens": 150,
                "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
                "output_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(input=50, output=40, reasoning=10, cache_read=30, cache_write=20),
            id="openai-responses",
        ),
        pytest.param(
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            Usage(input=32, output=9, reasoning=94),
            id="xai-reasoning-beside",
        ),
        pytest.param(
            {
                "prompt_tokens": 279,
                "completion_tokens": 6,
                "total_tokens": 374,
                "prompt_tokens_details": {"cached_tokens": 163},
                "completion_tokens_details": {"reasoning_tokens": 89},
            },
            Usage(input=116, output=6, reasoning=89, cache_read=163),
            id="xai-cached",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 60},
            Usage(input=9, output=12, reasoning=39),
            id="thinking-only-in-the-total",
        ),
        pytest.param(
            {
                "prompt_tokens": 20,
                "completion_tokens": 5,
                "prompt_cache_hit_tokens": 12,
                "prompt_cache_miss_tokens": 8,
            },
            Usage(input=8, output=5, cache_read=12),
            id="deepseek",
        ),
        pytest.param(
            {"prompt_tokens": 2989, "completion_tokens": 5, "cached_tokens": 2989},
            Usage(output=5, cache_read=2989),
            id="moonshot",
        ),
        pytest.param(
            {
                "prompt_tokens": 40,
                "completion_tokens": 5,
                "total_tokens": 45,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_creation_input_tokens": 20},
            },
            Usage(input=10, output=5, cache_read=10, cache_write=20),
            id="model-studio",
        ),
        pytest.param(
            {
                "prompt_tokens": 40,
                "completion_tokens": 5,
                "total_tokens": 45,
                "prompt_tokens_details": {"cached_tokens": 10},
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 20,
            },
            Usage(input=10, output=5, cache_read=10, cache_write=20),
            id="litellm-both-spellings",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 45,
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 20,
            },
            Usage(input=10, output=5, cache_read=10, cache_write=20),
            id="cache-beside-the-prompt",
        ),
        pytest.param(
            {"prompt_tokens": 5.0, "completion_tokens": 3.0}, Usage(input=5, output=3), id="floats"
        ),
        pytest.param(
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "prompt_tokens_details": None,
                "completion_tokens_details": {"reasoning_tokens": None},
            },
            Usage(input=5, output=3),
            id="nulls",
        ),
        pytest.param(
            {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"x": True}},
            Usage(input=5, output=3),
            id="unknown-details",
        ),
    ],
)
def test_each_spelling_is_counted_once(counts: JsonObject, usage: Usage) -> None:
    assert read(counts) == usage


@pytest.mark.parametrize("counts", [None, {}, [], "many", 5, {"prompt_tokens": "5"}, {"x": 1}])
def test_what_counts_nothing_is_no_usage(counts: JsonValue) -> None:
    assert read(counts) is None


@pytest.mark.parametrize("raw", [b"", b"{", b'{"prompt_tokens":', b"\xff", b"[" * 100_000])
def test_counts_that_cannot_be_read_do_not_fail_a_turn(raw: bytes) -> None:
    assert token_usage.read(raw) is None


def test_counts_of_nothing_do_not_replace_what_was_counted() -> None:
    counted = Usage(input=5, output=3)
    assert token_usage.merge(counted, Usage()) == counted
    assert token_usage.merge(counted, None) == counted
    assert token_usage.merge(counted, Usage(input=6)) == Usage(input=6)
    assert token_usage.merge(None, Usage()) == Usage()


@given(fresh=COUNT, read_again=COUNT, written=COUNT, said=COUNT, thought=COUNT)
@pytest.mark.parametrize("cache_beside", [False, True])
@pytest.mark.parametrize("reasoning_beside", [False, True])
def test_every_token_is_counted_once_whatever_a_count_includes(
    *,
    fresh: int,
    read_again: int,
    written: int,
    said: int,
    thought: int,
    cache_beside: bool,
    reasoning_beside: bool,
) -> None:
    cached = read_again + written
    beside = cached * cache_beside + thought * reasoning_beside
    if cache_beside and beside != cached and cached == thought:
        return  # The total cannot tell which of the two stands beside the other counts.
    counts: JsonObject = {
        "prompt_tokens": fresh + (0 if cache_beside else cached),
        "completion_tokens": said + (0 if reasoning_beside else thought),
        "total_tokens": fresh + cached + said + thought,
        "prompt_tokens_details": {"cached_tokens": read_again, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
    usage = read(counts)
    assert usage is not None
    parts = (usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write)
    assert sum(parts) == fresh + cached + said + thought
    if not (reasoning_beside and not cache_beside and cached == thought):
        assert parts == (fresh, said, thought, read_again, written)


@given(
    st.dictionaries(
        st.sampled_from(
            ["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "input_tokens"]
        ),
        st.one_of(st.integers(), st.floats(allow_nan=False), st.text(), st.none(), st.booleans()),
    )
)
def test_odd_counts_are_never_negative(counts: JsonObject) -> None:
    usage = read(counts)
    if usage is not None:
        assert min(usage.input, usage.output, usage.reasoning, usage.cache_read) >= 0
