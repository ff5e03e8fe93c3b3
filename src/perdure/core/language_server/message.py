"""The words between us and a language server: frames of bytes, and JSON-RPC within them.

A frame is a head that says how long its body is, and the body. What is larger than the bound is
dropped as it comes, without being held. Which requests of a server have an answer is decided here
as well; we offer little, and say so. Processes and waiting are not known here.

Invariant: whatever bytes come, memory is bounded by one message, and the only failure is
LspFramingError, after which nothing that this server says can be understood.
"""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length"
_DIGITS_MAX: Final = 12
_METHOD_NOT_FOUND: Final = -32601
_SETTINGS_ASKED_MAX: Final = 1_000
_NULL_ANSWERS: Final = frozenset(
    {
        "client/registerCapability",
        "client/unregisterCapability",
        "window/showMessageRequest",
        "window/workDoneProgress/create",
    }
)
"""Requests that are content with being acknowledged."""


class LspFramingError(Exception):
    """What came is not a frame, and nobody can say where the next one begins."""


class Response(Value):
    """What became of a request of ours."""

    id: int
    failed: bool
    result: JsonValue


class ServerRequest(Value):
    """A request of the server."""

    id: int | str
    method: str
    params: JsonValue


class Notification(Value):
    """A notification of the server."""

    method: str
    params: JsonValue


Message = Response | ServerRequest | Notification


class Framer:
    """Cuts what a server says into the bodies of its messages."""

    def __init__(self, *, bytes_max: int = limits.LSP_MESSAGE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held = bytearray()
        self._wanted: int | None = None
        """The length of the body that is being read; None while a head is."""
        self._dropped = 0
        """How much of a body that is too large is still to come."""

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that `data` completes."""
        self._held += data
        bodies: list[bytes] = []
        while self._dropping() or self._in_head() or self._in_body(bodies):
            pass
        return bodies

    def _dropping(self) -> bool:
        """Drop what is there of a body that is too large; whether anything was dropped."""
        gone = min(self._dropped, len(self._held))
        del self._held[:gone]
        self._dropped -= gone
        return gone > 0

    def _in_head(self) -> bool:
        """Read a head, if one is due and all there; whether it was."""
        if self._wanted is not None or self._dropped:
            return False
        end = self._held.find(_HEAD_END, 0, limits.LSP_HEAD_BYTES_MAX)
        if end < 0:
            if len(self._held) >= limits.LSP_HEAD_BYTES_MAX:
                raise LspFramingError("a message has no end of its head")
            return False
        length = _length(bytes(self._held[:end]))
        del self._held[: end + len(_HEAD_END)]
        if length > self._bytes_max:
            self._dropped = length
        else:
            self._wanted = length
        return True

    def _in_body(self, bodies: list[bytes]) -> bool:
        """Take a body, if one is due and all there; whether it was."""
        if self._wanted is None or len(self._held) < self._wanted:
            return False
        bodies.append(bytes(self._held[: self._wanted]))
        del self._held[: self._wanted]
        self._wanted = None
        return True


def read(body: bytes) -> Message | None:
    """The message that a body is; None for what is none."""
    try:
        said = codec.decode(_Envelope, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if said.method is UNSET:
        # Our own requests have numbers; nothing else can be an answer to one.
        if not isinstance(said.id, int):
            return None
        return Response(said.id, said.error is not None, said.result)
    if said.id is None:
        return Notification(said.method, said.params)
    return ServerRequest(said.id, said.method, said.params)


def request(id: int, method: str, params: JsonValue) -> bytes:
    return _frame({"id": id, "method": method, "params": params})


def notification(method: str, params: JsonValue) -> bytes:
    return _frame({"method": method, "params": params})


def reply(asked: ServerRequest, *, folder: JsonObject) -> bytes:
    """What we say to a request of the server; `folder` is the one that we work in."""
    if asked.method == "workspace/configuration":
        return _frame({"id": asked.id, "result": [None] * _settings_asked(asked.params)})
    if asked.method == "workspace/workspaceFolders":
        return _frame({"id": asked.id, "result": [folder]})
    if asked.method == "workspace/applyEdit":
        return _frame({"id": asked.id, "result": {"applied": False}})
    if asked.method in _NULL_ANSWERS:
        return _frame({"id": asked.id, "result": None})
    error = {"code": _METHOD_NOT_FOUND, "message": "this client has no such method"}
    return _frame({"id": asked.id, "error": error})


class _Envelope(Value):
    """Any message of JSON-RPC."""

    id: int | str | None = None
    method: str | UnsetType = UNSET
    params: JsonValue = None
    result: JsonValue = None
    error: JsonValue = None


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        digits = value.strip()
        if colon and name.strip().lower() == _LENGTH:
            if not digits.isdigit() or len(digits) > _DIGITS_MAX:
                break
            return int(digits)
    raise LspFramingError("a message does not say how long it is")


def _frame(message: JsonObject) -> bytes:
    body = codec.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _settings_asked(params: JsonValue) -> int:
    items: JsonValue = params.get("items") if jsonc.is_object(params) else None
    return min(len(items), _SETTINGS_ASKED_MAX) if jsonc.is_list(items) else 0
