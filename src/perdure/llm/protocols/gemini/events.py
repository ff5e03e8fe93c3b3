"""Google Gemini: stream chunks and token counts.

Decoding is lenient: unknown fields are skipped, and optional ones may be missing. `stream`
interprets the chunks.
"""

from typing import Final

import msgspec

from perdure.llm.encoding import provider_json
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonObject

_TOKENS_MAX: Final = 2**53
_NOT_GIVEN: Final = (b"", b"null")


class FunctionCall(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    id: str | None = None


class Code(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Code that the provider executes."""

    language: str | None = None
    code: str | None = None
    id: str | None = None


class CodeResult(msgspec.Struct, omit_defaults=True, rename="camel"):
    outcome: str | None = None
    output: str | None = None
    id: str | None = None


class Image(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A file that the model made, in base64."""

    mime_type: str | None = None
    data: str | None = None


class Part(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    executable_code: Code | None = None
    code_execution_result: CodeResult | None = None
    inline_data: Image | None = None
    tool_call: msgspec.Raw = msgspec.Raw()
    tool_response: msgspec.Raw = msgspec.Raw()

    @property
    def hosted(self) -> bool:
        """Whether it is work of the provider's own."""
        return bool(
            self.executable_code
            or self.code_execution_result
            or self.inline_data
            or self.tool_call
            or self.tool_response
        )


class Content(msgspec.Struct, gc=False, rename="camel"):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None


class Feedback(msgspec.Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class Chunk(msgspec.Struct, gc=False, rename="camel"):
    candidates: list[Candidate] | None = None
    usage_metadata: msgspec.Raw = msgspec.Raw()
    prompt_feedback: Feedback | None = None
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_error(self) -> bool:
        return bytes(self.error) not in _NOT_GIVEN


_CHUNK: Final = msgspec.json.Decoder(Chunk)


class _Counts(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


def decode(data: bytes) -> Chunk:
    """Decode a chunk. Raises LLMError."""
    return provider_json.decode(_CHUNK, data, "a chunk", keeps_raw=True)


def text_of(raw: msgspec.Raw) -> str:
    """The raw input of a call; empty if there is none."""
    if bytes(raw) in _NOT_GIVEN:
        return ""
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise provider_json.not_understood("a chunk", error) from error


def object_of(raw: msgspec.Raw) -> JsonObject:
    """A part that is kept as it is."""
    try:
        codec.require_shallow(bytes(raw))
        return codec.decode(JsonObject, bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise provider_json.not_understood("a chunk", error) from error


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """The usage. The prompt count includes cached tokens; thoughts are counted separately."""
    try:
        counts = codec.decode(_Counts, bytes(raw))
    except msgspec.DecodeError:
        # Invalid counts must not fail a turn.
        return None
    if counts.prompt_token_count is None and counts.candidates_token_count is None:
        return None
    prompt = _tokens(counts.prompt_token_count) + _tokens(counts.tool_use_prompt_token_count)
    cached = min(_tokens(counts.cached_content_token_count), prompt)
    return Usage(
        input=prompt - cached,
        output=_tokens(counts.candidates_token_count),
        reasoning=_tokens(counts.thoughts_token_count),
        cache_read=cached,
    )


def _tokens(count: int | None) -> int:
    return max(0, min(count or 0, _TOKENS_MAX))
