"""The answers of a faulty provider: one HTTP response each, and how its delivery fails.

Faults of the content (line ends, garbage, a repeated frame, no `[DONE]`) are made in the body;
faults of the delivery (closed, reset, stalled, in pieces) are offsets in the whole response. All of
them are values: this module opens no socket.

Invariant: an answer without faults is a valid HTTP/1.1 response.
"""

import gzip
from collections.abc import Mapping
from typing import Final, Literal

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

Framing = Literal["chunked", "until-close"]

_DONE: Final = b"data: [DONE]\n\n"
_REASONS: Final = {200: "OK", 429: "Too Many Requests", 500: "Internal Server Error"}
_STREAM: Final = (("content-type", "text/event-stream"),)


class Complete(Value):
    """The whole response is sent."""


class Close(Value):
    """After `at` bytes of the response the connection is closed, with a FIN."""

    at: int


class Reset(Value):
    """After `at` bytes the connection is reset."""

    at: int


class Stall(Value):
    """After `at` bytes nothing more is sent, and the connection stays open."""

    at: int


Ending = Complete | Close | Reset | Stall


class ProviderAnswer(Value, kw_only=True):
    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = _STREAM
    framing: Framing = "chunked"
    """How the end of the body is marked: by a last chunk, or by the end of the connection."""
    pieces: tuple[int, ...] = ()
    """Where the response is cut into pieces that are sent one after the other."""
    ending: Ending = Complete()

    def head(self) -> bytes:
        """The status line and the headers."""
        framed = ("transfer-encoding", "chunked")
        if self.framing == "until-close":
            framed = ("connection", "close")
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Answer')}"]
        lines += (f"{name}: {value}" for name, value in (*self.headers, framed))
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def response(self) -> bytes:
        """All bytes of the response."""
        if self.framing == "until-close":
            return self.head() + self.body
        frames = (b"%x\r\n%b\r\n" % (len(part), part) for part in _frames(self.body))
        return b"".join((self.head(), *frames, b"0\r\n\r\n"))


def chat_stream(
    *deltas: JsonObject, finish: str = "stop", usage: JsonObject | None = None
) -> bytes:
    """An OpenAI-compatible stream: a frame for each delta, the finish, the usage, `[DONE]`."""
    chunks: list[JsonObject] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        chunks.append({"choices": [], "usage": usage})
    return b"".join(b"data: %b\n\n" % codec.encode(chunk) for chunk in chunks) + _DONE


def refusal(
    status: int, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
) -> ProviderAnswer:
    """An error answer; without a body, or with a JSON body."""
    named = {"content-type": "application/json", **(headers or {})}
    content = b"" if body is None else codec.encode(body)
    return ProviderAnswer(status=status, headers=tuple(named.items()), body=content)


def page(status: int = 200, *, title: str = "Sign in") -> ProviderAnswer:
    """A page of HTML, as proxies and captive portals send it."""
    body = f"<!doctype html><html><head><title>{title}</title></head></html>".encode()
    return ProviderAnswer(status=status, headers=(("content-type", "text/html"),), body=body)


def compressed(body: bytes, *, keep: int | None = None) -> ProviderAnswer:
    """A stream compressed without being asked for; `keep` cuts it after so many bytes."""
    packed = gzip.compress(body, mtime=0)
    return ProviderAnswer(
        headers=(*_STREAM, ("content-encoding", "gzip")),
        body=packed if keep is None else packed[:keep],
    )


def with_line_ends(body: bytes, end: bytes) -> bytes:
    """The same stream with other line ends: b"\\r\\n" or b"\\r"."""
    return body.replace(b"\n", end)


def without_done(body: bytes) -> bytes:
    return body.removesuffix(_DONE)


def with_garbage(body: bytes, at: int, garbage: bytes = b"\xff\xfe\x00}{") -> bytes:
    return body[:at] + garbage + body[at:]


def with_repeated_frame(body: bytes, at: int) -> bytes:
    """The body with the frame that holds byte `at` twice."""
    start = 0
    for frame in _frames(body):
        if start <= at < start + len(frame):
            return body[: start + len(frame)] + frame + body[start + len(frame) :]
        start += len(frame)
    return body


def _frames(body: bytes) -> list[bytes]:
    """The frames of the body, each with its blank line; one piece if it has no frames."""
    *whole, rest = body.split(b"\n\n")
    return [*(frame + b"\n\n" for frame in whole), *([rest] if rest else [])]
