"""Results of MCP tools: what the model is shown of each kind of content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.mcp import result
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent, ToolContent

PNG = "aGVsbG8="


def shown(*parts: JsonValue) -> tuple[ToolContent, ...]:
    return result.read_result({"content": list(parts)}).content


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "hi"}, TextContent(text="hi")),
        ({"type": "text", "text": "half \ud800"}, TextContent(text="half ?")),
        (
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            FileContent(uri=f"data:image/png;base64,{PNG}", mime="image/png"),
        ),
        (
            {"type": "image", "data": PNG, "mimeType": "image/svg+xml"},
            TextContent(text="[image/svg+xml, 5 bytes: cannot be shown]"),
        ),
        (
            {"type": "image", "data": "%%", "mimeType": "image/png"},
            TextContent(text="[image/png: not valid base64]"),
        ),
        (
            {"type": "image", "data": PNG, "mimeType": "image/png;base64,x\n"},
            TextContent(text="[application/octet-stream, 5 bytes: cannot be shown]"),
        ),
        (
            {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
            TextContent(text="[audio/wav, 5 bytes: cannot be shown]"),
        ),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "A file."},
            TextContent(text="[a](file:///a): A file."),
        ),
        (
            {"type": "resource", "resource": {"uri": "x://a", "text": "inside"}},
            TextContent(text="x://a:\ninside"),
        ),
        (
            {
                "type": "resource",
                "resource": {"uri": "x://a", "blob": PNG, "mimeType": "image/png"},
            },
            FileContent(uri=f"data:image/png;base64,{PNG}", mime="image/png", name="x://a"),
        ),
        ({"type": "video"}, TextContent(text="[a part of the unknown type video was left out]")),
        (3, TextContent(text="[a part that is not an object was left out]")),
    ],
    ids=repr,
)
def test_each_kind_of_content(part: JsonValue, expected: ToolContent) -> None:
    assert shown(part) == (expected,)


def test_texts_are_joined_on_lines_of_their_own() -> None:
    parts: list[JsonObject] = [{"type": "text", "text": each} for each in ("a", "b\n", "c")]
    assert shown(*parts) == (TextContent(text="a\nb\nc"),)


def test_an_error_is_told_in_the_words_of_the_server_and_bounded() -> None:
    failed = result.read_result({"isError": True, "content": [{"type": "text", "text": "no"}]})
    assert failed.failed
    assert failed.failure == "no"
    silent = result.read_result({"isError": True})
    assert silent.failure == "The tool failed and did not say why."
    assert len(result.bounded_error("x" * 1_000_000)) < limits.MCP_ERROR_CHARS_MAX + 100


@pytest.mark.parametrize(
    ("structured", "expected"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ([1], {"result": [1]}),
        (3, {"result": 3}),
    ],
)
def test_a_structured_value_is_kept_as_an_object(
    structured: JsonValue, expected: JsonObject
) -> None:
    assert result.read_result({"structuredContent": structured}).structured == expected


def test_what_is_too_large_to_be_kept_is_shown() -> None:
    large = {"text": "x" * limits.MCP_STRUCTURED_BYTES_MAX}
    found = result.read_result({"structuredContent": large})
    assert found.structured == {}
    (text,) = found.content
    assert isinstance(text, TextContent)
    assert text.text == codec.encode(large).decode()
    image = {"type": "image", "data": "A" * (limits.IMAGE_BASE64_BYTES_MAX + 4)}
    assert shown({**image, "mimeType": "image/png"}) == (
        TextContent(text="[image/png: too large to be shown]"),
    )
    many = shown(*({"type": "text", "text": "x"} for _ in range(1_000)))
    (only,) = many
    assert isinstance(only, TextContent)
    assert only.text.endswith("[800 more parts were left out]")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "data", "mimeType", "resource", "uri", "blob", "content"]
            ),
            inner,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["content", "structuredContent", "isError"]), json_values))
def test_reading_never_fails_and_can_be_stored(answer: JsonObject) -> None:
    found = result.read_result(answer)
    codec.encode(found.content)
    codec.encode(found.structured)
    assert found.failure


def test_the_contents_of_a_resource_are_read() -> None:
    found = result.read_resource({"contents": [{"uri": "x://a", "text": "one"}, {"blob": ""}]})
    assert isinstance(found[0], TextContent)
    assert found[0].text.startswith("x://a:\none\n[unnamed, application/octet-stream")
    assert result.read_resource({"contents": 3}) == ()
