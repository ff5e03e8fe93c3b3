"""Frames of a language server, however they are cut, and JSON-RPC within them."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.language_server import message as lsp_message
from perdure.core.language_server.message import (
    Framer,
    LspFramingError,
    Notification,
    Response,
    ServerRequest,
)
from perdure.schema import codec
from perdure.schema.codec import JsonValue


def frame(body: bytes, *, head: bytes = b"") -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_frames_are_found_however_they_are_cut(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(body) for body in bodies)
    framer, found = Framer(bytes_max=30), list[bytes]()
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += framer.feed(stream[:cut])
        stream = stream[cut:]
    assert found == [body for body in bodies if len(body) <= 30]


def test_other_headers_and_spellings_are_taken() -> None:
    head = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
    framer = Framer()
    assert framer.feed(frame(b"{}", head=head)) == [b"{}"]
    assert framer.feed(b"content-length:2\r\n\r\n[]") == [b"[]"]


@pytest.mark.parametrize(
    "said",
    [
        b"Starting...\n" * 1_000,
        b"\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: 1" + b"0" * 5_000 + b"\r\n\r\n",
        b"Content-Length: 9999999999999\r\n\r\n",
        b"\0" * limits.LSP_HEAD_BYTES_MAX,
    ],
)
def test_what_is_no_frame_is_refused(said: bytes) -> None:
    with pytest.raises(LspFramingError):
        Framer().feed(said)


def test_a_message_that_is_too_large_is_never_held() -> None:
    framer, piece = Framer(bytes_max=10), b"x" * 100_000
    tracemalloc.start()
    try:
        assert framer.feed(b"Content-Length: 20000000\r\n\r\n") == []
        for _ in range(200):
            assert framer.feed(piece) == []
        assert framer.feed(frame(b"{}")) == [b"{}"]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"id":1,"result":{"a":2}}', Response(1, False, {"a": 2})),
        (b'{"id":1,"result":null}', Response(1, False, None)),
        (b'{"id":1,"error":{"code":1}}', Response(1, True, None)),
        (b'{"id":"q","method":"m","params":[]}', ServerRequest("q", "m", [])),
        (b'{"id":0,"method":"m"}', ServerRequest(0, "m", None)),
        (b'{"method":"m","params":{}}', Notification("m", {})),
        (b'{"id":"q","result":1}', None),
        (b"{}", None),
        (b"[]", None),
        (b"", None),
        (b'{"id":1.5}', None),
        (b'{"method":5}', None),
        (b'{"method":"\xff"}', None),
        (b'{"params":' + b"[" * 100_000, None),
    ],
)
def test_messages_are_told_apart(body: bytes, message: lsp_message.Message | None) -> None:
    assert lsp_message.read(body) == message


def test_what_we_say_can_be_read_back() -> None:
    said = lsp_message.request(7, "initialize", {"a": "ü"})
    said += lsp_message.notification("exit", None)
    asked, told = Framer().feed(said)
    assert lsp_message.read(asked) == ServerRequest(7, "initialize", {"a": "ü"})
    assert lsp_message.read(told) == Notification("exit", None)


SETTINGS: tuple[tuple[JsonValue, int], ...] = (
    ({"items": [1, 2]}, 2),
    ({"items": 5}, 0),
    (None, 0),
    ({"items": [1] * 100_000}, 1_000),
)


@pytest.mark.parametrize(("params", "count"), SETTINGS)
def test_nothing_is_configured_and_the_answer_is_bounded(params: JsonValue, count: int) -> None:
    asked = ServerRequest(1, "workspace/configuration", params)
    (body,) = Framer().feed(lsp_message.reply(asked, folder={}))
    assert codec.decode_any(body) == {"jsonrpc": "2.0", "id": 1, "result": [None] * count}
