"""Requests to the filtering proxy: what is understood, and what two readers might read apart."""

import pytest

from perdure.core.sandbox import proxy_request
from perdure.core.sandbox.host_list import Target
from perdure.core.sandbox.proxy_request import BadRequestError, PlainRequest, TunnelRequest


def test_a_tunnel_names_its_host_and_port() -> None:
    found = proxy_request.parse(b"CONNECT Docs.Python.org.:443 HTTP/1.1\r\nHost: other\r\n\r\n")
    assert found == TunnelRequest(Target("docs.python.org", 443))


def test_a_plain_request_is_written_anew_for_its_server() -> None:
    found = proxy_request.parse(
        b"POST http://Allowed.test:8080?q=1 HTTP/1.1\r\nHost: allowed.test:8080\r\n"
        b"Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nX-Own: 1\r\n"
        b"Connection: keep-alive, x-hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\n"
    )
    assert found == PlainRequest(
        Target("allowed.test", 8080),
        b"POST /?q=1 HTTP/1.1\r\nHost: allowed.test:8080\r\nX-Own: 1\r\nConnection: close\r\n"
        b"Content-Length: 3\r\n\r\n",
        3,
    )


def test_a_body_in_chunks_stays_one() -> None:
    found = proxy_request.parse(
        b"PUT http://a.test/x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert isinstance(found, PlainRequest)
    assert found.length is None
    assert found.head.endswith(b"Transfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize(
    "lines",
    [
        ["GET / HTTP/1.1", "Host: a.test"],
        ["GET https://a.test/ HTTP/1.1", "Host: a.test"],
        ["GET ftp://a.test/ HTTP/1.1", "Host: a.test"],
        ["GET http://a.test/ HTTP/1.1"],
        ["GET http://a.test/ HTTP/1.1", "Host: b.test"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test:81"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", "Host: a.test"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", "hOST: b.test"],
        ["GET http://a.test/ HTTP/1.1", "Host : a.test"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", " folded: x"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test\nX: b"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test\rX: b"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", "X: \x00"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", ": x"],
        ["GET http://u:p@a.test/ HTTP/1.1", "Host: a.test"],
        ["GET http://a.test@b.test/ HTTP/1.1", "Host: a.test"],
        ["GET http://a.test\\@b.test/ HTTP/1.1", "Host: a.test"],
        ["GET http://a.test#@b.test/ HTTP/1.1", "Host: a.test"],
        ["GET http:///x HTTP/1.1", "Host: a.test"],
        ["GET http://a.test/ HTTP/2.0", "Host: a.test"],
        ["GET http://a.test/", "Host: a.test"],
        ["GET  http://a.test/ HTTP/1.1", "Host: a.test"],
        ["GET http://a.test/ b HTTP/1.1", "Host: a.test"],
        ["get http://a.test/ HTTP/1.1", "Host: a.test"],
        ["", "GET http://a.test/ HTTP/1.1", "Host: a.test"],
        ["PRI * HTTP/2.0"],
        ["OPTIONS * HTTP/1.1", "Host: a.test"],
        ["CONNECT a.test HTTP/1.1"],
        ["CONNECT http://a.test:443 HTTP/1.1"],
        ["CONNECT a.test:443/x HTTP/1.1"],
        ["CONNECT u@a.test:443 HTTP/1.1"],
        ["CONNECT a.test:443@b.test:443 HTTP/1.1"],
        ["CONNECT [::1%25eth0]:443 HTTP/1.1"],
        ["CONNECT a.test:0x1bb HTTP/1.1"],
        ["CONNECT a.test:+443 HTTP/1.1"],
        ["CONNECT a.test:443#b.test HTTP/1.1"],
        ["CONNECT a%00.test:443 HTTP/1.1"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 1", "Content-Length: 1"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 1, 1"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: +1"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: -1"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: 0x10"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Content-Length: "],
        [
            *("POST http://a.test/ HTTP/1.1", "Host: a.test"),
            *("Content-Length: 1", "Transfer-Encoding: chunked"),
        ],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: gzip, chunked"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: xchunked"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: identity"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding:\x0bchunked"],
        ["POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding : chunked"],
        ["POST http://a.test/ HTTP/1.0", "Transfer-Encoding: chunked"],
        ["GET http://a.test/ HTTP/1.1", "Host: a.test", *(["X: y"] * 300)],
    ],
)
def test_a_request_that_might_be_read_in_two_ways_is_refused(lines: list[str]) -> None:
    with pytest.raises(BadRequestError):
        proxy_request.parse("\r\n".join((*lines, "", "")).encode("latin-1"))


@pytest.mark.parametrize(
    "line", [b"\r\n", b"-1\r\n", b"0x1\r\n", b"1 1\r\n", b"1\n", b"123456789\r\n"]
)
def test_a_chunk_without_a_clear_length_is_refused(line: bytes) -> None:
    with pytest.raises(BadRequestError):
        proxy_request.parse_chunk_size(line)


def test_the_length_of_a_chunk_is_hexadecimal() -> None:
    assert proxy_request.parse_chunk_size(b"1f;name=value\r\n") == 31


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"GET / HTTP/1.1\r\n", True),
        (b"\r\n\r\nGET / HTTP/1.1\r\n", True),
        (b"PRI * HTTP/2.0\r\n\r\nSM", True),
        (b"x" * 9_000, True),
        (b"GET / HT", "incomplete"),
        (b"\r\n", "incomplete"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", False),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", False),
        (b"PING\r\n", False),
        (b"EHLO me\n", False),
    ],
)
def test_plain_http_is_recognised(data: bytes, found: bool | str) -> None:
    assert proxy_request.looks_like_http(data) == found
