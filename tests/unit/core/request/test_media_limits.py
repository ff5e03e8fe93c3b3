"""Which media of a conversation are sent, and which are only named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.config_file.entries import AttachmentsEntry, ImageEntry
from perdure.core.request import media_limits
from perdure.core.request.media_limits import ImageBounds, MediaLimits
from perdure.llm.request import Dialect

SMALL = MediaLimits(image=ImageBounds(), parts_max=4, chars_max=100)
FAMILIES: tuple[Dialect, ...] = ("openai", "openai_compatible", "anthropic", "google", "bedrock")
SIZES = st.lists(st.integers(1, 100), max_size=40)


@pytest.mark.parametrize(
    ("sizes", "gone"),
    [
        ([], 0),
        ([100], 0),
        ([50, 50], 0),
        ([1, 1, 1, 1], 0),
        ([1, 1, 1, 1, 1], 3),
        ([60, 60], 1),
        ([30, 30, 30, 30], 3),
        ([100, 100, 100], 2),
    ],
)
def test_the_oldest_are_left_out_down_to_half_of_the_budget(sizes: list[int], gone: int) -> None:
    assert media_limits.count_left_out(sizes, SMALL) == gone


@given(SIZES)
def test_what_is_shown_is_within_the_budget_and_the_newest_is_shown(sizes: list[int]) -> None:
    gone = media_limits.count_left_out(sizes, SMALL)
    assert sum(sizes[gone:]) <= SMALL.chars_max
    assert len(sizes[gone:]) <= SMALL.parts_max
    assert not sizes or gone < len(sizes)


@given(SIZES, SIZES)
def test_what_was_left_out_stays_left_out_while_a_conversation_grows(
    sizes: list[int], more: list[int]
) -> None:
    before = media_limits.count_left_out(sizes, SMALL)
    assert media_limits.count_left_out([*sizes, *more], SMALL) >= before


@given(st.integers(1, 200))
def test_the_beginning_of_a_request_changes_once_for_half_a_budget(count: int) -> None:
    wide = MediaLimits(image=ImageBounds(), parts_max=20, chars_max=1_000)
    steps = {media_limits.count_left_out([1] * length, wide) for length in range(count + 1)}
    assert len(steps) - 1 <= count // (wide.parts_max // 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_image_of_the_largest_size_fits_every_provider(family: Dialect) -> None:
    limits = media_limits.limits_for(family)
    assert media_limits.count_left_out([limits.image.chars_max], limits) == 0
    assert limits.chars_max >= limits.image.chars_max


def test_a_kind_is_refused_only_where_somebody_said_what_a_model_takes() -> None:
    assert media_limits.limits_for("openai").refusal("image") is None
    assert media_limits.limits_for("openai").refusal("pdf") is not None
    assert media_limits.limits_for("google").refusal("pdf") is None
    knows = media_limits.limits_for("openai", frozenset({"text", "image"}))
    assert knows.refusal("image") is None
    assert knows.refusal("pdf") is not None


def test_configuration_may_ask_for_smaller_images_and_not_for_larger_ones() -> None:
    asked = ImageEntry(max_width=100, max_height=999_999, max_base64_bytes=999_999_999)
    default = ImageBounds()
    assert media_limits.configured_bounds([AttachmentsEntry(image=asked)]) == ImageBounds(
        width_max=100, height_max=default.height_max, chars_max=default.chars_max
    )
    off = AttachmentsEntry(image=ImageEntry(auto_resize=False))
    assert media_limits.configured_bounds([AttachmentsEntry(image=asked), off]).resize is False
    assert media_limits.configured_bounds([]) == default
