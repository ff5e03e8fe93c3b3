"""Bounding what one settlement puts before the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.request import tool_output
from perdure.core.request.tool_output import OutputLimits
from perdure.schema.session.tool import FileContent, TextContent
from tests.requirements import requirement

SMALL = OutputLimits(lines_max=10, bytes_max=400)


@requirement("S97")
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("\n" * 9, True),
        ("\n" * 10, False),
        ("x" * 400, True),
        ("x" * 401, False),
        ("é" * 200, True),
        ("é" * 201, False),
    ],
)
def test_lines_or_bytes_whichever_is_met_first(text: str, *, fits: bool) -> None:
    assert tool_output.fits(text, SMALL) is fits


@requirement("S98", "S99")
def test_a_preview_keeps_both_ends_and_names_the_full_text() -> None:
    text = "\n".join(str(number) for number in range(100))
    preview = tool_output.preview(text, SMALL, path="/data/tool_1")
    assert preview.startswith("0\n1\n2\n")
    assert preview.endswith("\n97\n98\n99")
    assert "100 lines" in preview
    assert "/data/tool_1" in preview


@requirement("S101")
def test_a_preview_without_a_file_says_that_the_rest_is_gone() -> None:
    assert "not kept" in tool_output.preview("x" * 1_000, SMALL, path=None)


def test_a_short_head_leaves_its_room_to_a_long_tail() -> None:
    text = "\n".join(["short"] * 50 + ["y" * 5_000])
    preview = tool_output.preview(text, SMALL, path="/data/tool_1")
    assert len(preview.encode()) > 350


@requirement("S97")
@given(
    text=st.text(st.sampled_from("a\né\U0001f600")),
    repeats=st.integers(1, 60),
    lines_max=st.integers(1, 40),
    bytes_max=st.integers(0, 300),
    path=st.sampled_from([None, "/data/tool_1"]),
)
def test_a_preview_is_within_the_limits_and_never_cuts_a_character(
    text: str, repeats: int, lines_max: int, bytes_max: int, path: str | None
) -> None:
    limits = OutputLimits(lines_max=lines_max, bytes_max=bytes_max)
    whole = text * repeats
    if tool_output.fits(whole, limits):
        return
    preview = tool_output.preview(whole, limits, path=path)
    assert len(preview.encode()) <= bytes_max
    assert preview.count("\n") < lines_max
    assert "\ufffd" not in preview


@requirement("S15", "S103")
def test_only_text_counts_and_without_parts_the_readable_json_does() -> None:
    image = FileContent(uri="data:image/png;base64,AAAA", mime="image/png")
    parts = (TextContent(text="a"), image, TextContent(text="b"))
    assert tool_output.measured_text({"x": 1}, parts) == "ab"
    assert tool_output.measured_text({"x": 1}, (image,)) == ""
    assert tool_output.measured_text({"x": [1]}, ()) == '{\n  "x": [\n    1\n  ]\n}'


@requirement("S96")
def test_the_preview_replaces_text_and_keeps_media() -> None:
    image = FileContent(uri="data:image/png;base64,AAAA", mime="image/png")
    content = tool_output.with_preview((TextContent(text="long"), image), "short")
    assert content == (TextContent(text="short"), image)
