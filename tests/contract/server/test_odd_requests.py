"""Requests that no good client sends: each has its proper answer, and none is a defect."""

import asyncio
import string
from collections.abc import Generator
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.figures import Figure
from tests.support.api import Api
from tests.support.raw_http import RawClient, connected
from tests.support.shared_server import shared_server

HOST: Final = b"host: localhost\r\n"
JSON: Final = b"content-type: application/json\r\n"
ZEROS: Final = b"0" * 5_000


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    with shared_server(tmp_path_factory.mktemp("odd")) as server:
        yield server.api


def post(headers: bytes, body: bytes = b"{}") -> bytes:
    return b"POST /api/session HTTP/1.1\r\n" + HOST + JSON + headers + b"\r\n" + body


def length(value: bytes, body: bytes = b"{}") -> bytes:
    return post(b"content-length: " + value + b"\r\n", body)


def get(headers: bytes = b"", path: bytes = b"/api/health", version: bytes = b"1.1") -> bytes:
    return b"GET " + path + b" HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n"


CHUNKED: Final = b"transfer-encoding: chunked\r\n"
UPGRADE: Final = b"connection: Upgrade\r\nupgrade: websocket\r\n"
ODD: Final[dict[str, tuple[bytes, int]]] = {
    "length with thousands of zeros": (length(ZEROS + b"2"), 200),
    "length of zeros alone": (length(ZEROS, b""), 200),
    "length with zeros before a large one": (length(ZEROS + b"99999999999"), 413),
    "length with blanks around": (length(b" \t2 \t"), 200),
    "length with a sign": (length(b"+2"), 400),
    "length below zero": (length(b"-2"), 400),
    "length that is empty": (length(b""), 400),
    "length twice in one": (length(b"2, 2"), 400),
    "length twice": (post(b"content-length: 2\r\ncontent-length: 2\r\n"), 400),
    "length in hexadecimal": (length(b"0x2"), 400),
    "length with an underscore": (length(b"1_0"), 400),
    "length as a fraction": (length(b"2.0"), 400),
    "length with an exponent": (length(b"2e0"), 400),
    "length in Arabic digits": (length("٢".encode()), 400),
    "length with a superscript": (length(b"\xb2"), 400),
    "length of words": (length(b"two"), 400),
    "length beyond 64 bits": (length(b"18446744073709551618"), 400),
    "length of thirty digits": (length(b"9" * 30), 400),
    "length of thousands of digits": (length(b"9" * 5_000), 400),
    "length beyond the limit": (length(b"999999999999"), 413),
    "length on another line": (length(b"\r\n 2"), 400),
    "length and chunks": (post(b"content-length: 2\r\n" + CHUNKED, b"2\r\n{}\r\n0\r\n\r\n"), 400),
    "chunks": (post(CHUNKED, b"2\r\n{}\r\n0\r\n\r\n"), 200),
    "chunks with zeros": (post(CHUNKED, b"0002\r\n{}\r\n000\r\n\r\n"), 200),
    "chunks with an extension": (post(CHUNKED, b"2;a=b\r\n{}\r\n0;c\r\n\r\n"), 200),
    "chunks with a trailer": (post(CHUNKED, b"2\r\n{}\r\n0\r\nhost: evil\r\n\r\n"), 200),
    "chunk of no size": (post(CHUNKED, b"\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk with a sign": (post(CHUNKED, b"-2\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk beyond 64 bits": (post(CHUNKED, b"fffffffffffffffff\r\n"), 400),
    "chunk that is longer than it says": (post(CHUNKED, b"1\r\n{}\r\n0\r\n\r\n"), 400),
    "chunks inside gzip": (post(b"transfer-encoding: gzip\r\n"), 400),
    "encoding that is not known": (post(b"transfer-encoding: x\r\n"), 400),
    "body in gzip": (post(b"content-encoding: gzip\r\ncontent-length: 2\r\n"), 415),
    "body that is not text": (length(b"2", b"\xff\xfe"), 400),
    "body that is deep": (length(b"40000", b"[" * 40_000), 400),
    "body that is a number": (length(b"5000", b"1" * 5_000), 400),
    "body of a lone surrogate": (length(b"18", b'{"title":"\\ud800"}'), 400),
    "body of nothing": (length(b"0", b""), 200),
    "get with a body": (get(b"content-length: 2\r\n") + b"{}", 200),
    "no host": (b"GET /api/health HTTP/1.1\r\n\r\n", 403),
    "two hosts": (get(b"host: localhost\r\n"), 400),
    "host of another": (b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n", 403),
    "host with a strange port": (b"GET / HTTP/1.1\r\nhost: localhost:x\r\n\r\n", 403),
    "host that is not text": (b"GET / HTTP/1.1\r\nhost: \xff\xfe\r\n\r\n", 403),
    "origin null": (get(b"origin: null\r\n"), 403),
    "no path": (b"GET  HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "path of a proxy": (get(path=b"http://localhost/api/health"), 200),
    "path of a host alone": (get(path=b"http://localhost"), 200),
    "path that is a star": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "path with a percent sign": (get(path=b"/api/%"), 404),
    "path with half a code": (get(path=b"/api/%zz%4"), 404),
    "path of broken UTF-8": (get(path=b"/api/session/%ff%fe"), 400),
    "path with a null": (get(path=b"/api/session/%00"), 400),
    "path that is not text": (get(path=b"/api/\xff"), 400),
    "path with dots": (get(path=b"/api/../api/health"), 404),
    "query of broken UTF-8": (get(path=b"/api/session?limit=%ff"), 400),
    "query of many digits": (get(path=b"/api/session?limit=" + b"9" * 5_000), 400),
    "method that is not known": (b"BREW /api/health HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "method in small letters": (b"get /api/health HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "method for another path": (b"DELETE /api/health HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "connect": (b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "old version": (get(version=b"1.0"), 200),
    "version of another protocol": (get(version=b"3.7"), 400),
    "second version": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "no version": (b"GET /api/health\r\n\r\n", 403),
    "header without a colon": (get(b"nothing\r\n"), 400),
    "header without a name": (get(b": x\r\n"), 400),
    "header with a blank in its name": (get(b"x y: z\r\n"), 400),
    "header with a null": (get(b"x: a\0b\r\n"), 400),
    "header on two lines": (get(b"x: a\r\n b\r\n"), 400),
    "authorization that is not base64": (get(b"authorization: Basic \xff\xff\r\n"), 200),
    "upgrade where nothing is": (get(UPGRADE), 400),
    "upgrade without a key": (get(UPGRADE, path=b"/api/pty/pty_x/connect"), 400),
    "upgrade to another protocol": (get(b"connection: Upgrade\r\nupgrade: h2c\r\n"), 200),
    "expectation that is not known": (get(b"expect: a miracle\r\n"), 200),
    "range that is not a range": (get(b"range: bytes=z-\r\n", path=b"/api/fs/read/nothing"), 404),
    "cursor that is not base64": (get(path=b"/api/session?cursor=%25%25"), 400),
    "last event that is not a number": (get(b"last-event-id: " + ZEROS + b"\r\n"), 200),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_request_has_its_proper_answer(api: Api, name: str, figure: Figure) -> None:
    data, status = ODD[name]
    async with connected(api.port) as client:
        await client.say(data)
        assert (await client.answer()).status == status
    figure("odd requests", 1)


HEADERS: Final = (
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "origin",
    "range",
    "sec-websocket-key",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
)
WORDS: Final = st.sampled_from(
    ["0", "00", "2", "-1", "bytes=", "Basic ", "chunked", "close", "gzip;q=", "localhost", "*", ":"]
)
VALUES: Final = st.lists(
    WORDS | st.text(string.digits + string.punctuation + " \té\xff", max_size=8), max_size=5
).map("".join)
PATHS: Final = st.sampled_from(
    ["/api/health", "/api/session", "/api/event", "/api/fs/read/x", "/api/pty/pty_x/connect", "*"]
)


@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"]),
    path=PATHS,
    headers=st.lists(st.tuples(st.sampled_from(HEADERS), VALUES), max_size=5),
    with_host=st.booleans(),
)
def test_no_header_of_any_value_is_a_defect(
    api: Api, method: str, path: str, headers: list[tuple[str, str]], *, with_host: bool
) -> None:
    lines = [f"{method} {path} HTTP/1.1", *(["host: localhost"] if with_host else [])]
    lines += [f"{name}: {value}" for name, value in headers]
    data = "\r\n".join([*lines, "", ""]).encode("latin-1") + b"{}"
    status = asyncio.run(_status(api, data))
    assert status is None or (status < 500 and status >= 101)


async def _status(api: Api, data: bytes) -> int | None:
    """The status of the answer; None if the server waits for more of the request."""
    async with connected(api.port) as client:
        client.writer.write(data)
        client.writer.write_eof()
        return await _first_status(client)


async def _first_status(client: RawClient) -> int | None:
    try:
        return (await client.head()).status
    except asyncio.IncompleteReadError:
        return None
