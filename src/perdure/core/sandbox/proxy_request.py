"""The request of a command to the filtering proxy: a tunnel (`CONNECT`), or one plain HTTP request.

A plain request is written anew for its server, with `Connection: close`, so that the proxy and the
server cannot read it differently.

Invariant: what two readers might read differently is refused: two lengths, a Host that is not that
of the address, folded headers, line ends without a carriage return.
"""

from collections.abc import Sequence
from typing import Final, Literal

from perdure.core.sandbox import host_list
from perdure.core.sandbox.host_list import Target
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

HEAD_BYTES_MAX: Final = 65_536
FIRST_LINE_BYTES_MAX: Final = 8_192

_REQUEST_LINE: Final = lazy_pattern(rb"([A-Z]{1,20}) ([\x21-\x7e]+) HTTP/1\.([01])")
_HEADER: Final = lazy_pattern(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
_ADDRESS: Final = lazy_pattern(rb"[hH][tT][tT][pP]://([^/?#]*)([^#]*)")
_LENGTH: Final = lazy_pattern(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = lazy_pattern(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_NOT_FORWARDED: Final = frozenset(
    {
        *(b"host", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"http2-settings"),
        *(b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"),
        *(b"content-length", b"transfer-encoding"),
    }
)
_HEADERS_MAX: Final = 200
_HTTP_MARK: Final = b" HTTP/"


class BadRequestError(ValueError):
    """The request is refused. The message says why."""


class TunnelRequest(Value):
    target: Target


class PlainRequest(Value):
    target: Target
    head: bytes
    """The request as it goes to the server, without its body."""
    length: int | None
    """The number of bytes of the body; None if it comes in chunks."""


def parse(head: bytes) -> TunnelRequest | PlainRequest:
    """Read a request up to the empty line after its headers. Raises BadRequestError."""
    line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    matched = _REQUEST_LINE.fullmatch(line)
    if matched is None:
        raise BadRequestError("the first line is not a request of HTTP/1")
    if len(lines) > _HEADERS_MAX:
        raise BadRequestError(f"there are more than {_HEADERS_MAX} headers")
    headers = [_parse_header(each) for each in lines]
    if matched[1] == b"CONNECT":
        return TunnelRequest(_parse_target(matched[2], port=None))
    return _parse_plain(matched[1], matched[2], headers, old=matched[3] == b"0")


def parse_chunk_size(line: bytes) -> int:
    """The length of a chunk by its first line. Raises BadRequestError."""
    matched = _CHUNK_SIZE.fullmatch(line)
    if matched is None:
        raise BadRequestError("a chunk has no length")
    return int(matched[1], 16)


def looks_like_http(data: bytes) -> bool | Literal["incomplete"]:
    """Whether a connection that begins with these bytes is plain HTTP."""
    line, ended, _ = data.lstrip(b"\r\n").partition(b"\n")
    if _HTTP_MARK in line:
        return True
    if ended or any(byte < 0x20 and byte not in b"\t\r" for byte in line) or not line.isascii():
        return False
    return "incomplete" if len(data) < FIRST_LINE_BYTES_MAX else True


def _parse_header(line: bytes) -> tuple[bytes, bytes]:
    matched = _HEADER.fullmatch(line)
    if matched is None:
        raise BadRequestError("a header is not one of HTTP/1")
    return matched[1], matched[2].strip(b" \t")


def _parse_plain(
    method: bytes, address: bytes, headers: Sequence[tuple[bytes, bytes]], *, old: bool
) -> PlainRequest:
    matched = _ADDRESS.fullmatch(address)
    if matched is None:
        raise BadRequestError("a proxy is asked for http:// addresses, or for a tunnel by CONNECT")
    target = _parse_target(matched[1], port=80)
    hosts = _values(headers, b"host")
    if len(hosts) > 1 or (not hosts and not old):
        raise BadRequestError("there must be one Host header")
    if hosts and _parse_target(hosts[0], port=80) != target:
        raise BadRequestError("the Host header is not the host of the address")
    length = _body_length(headers, old=old)
    kept = [pair for pair in headers if pair[0].lower() not in _NOT_FORWARDED | _named(headers)]
    framing = (b"Transfer-Encoding", b"chunked")
    if length is not None:
        framing = (b"Content-Length", str(length).encode())
    path = matched[2] if matched[2].startswith(b"/") else b"/" + matched[2]
    authority = str(target).removesuffix(":80").encode()
    written = [(b"Host", authority), *kept, (b"Connection", b"close")]
    if length != 0 or _values(headers, b"content-length"):
        written.append(framing)
    lines = [b"%s %s HTTP/1.1" % (method, path), *(b"%s: %s" % pair for pair in written)]
    return PlainRequest(target, b"\r\n".join((*lines, b"", b"")), length)


def _body_length(headers: Sequence[tuple[bytes, bytes]], *, old: bool) -> int | None:
    lengths, codings = _values(headers, b"content-length"), _values(headers, b"transfer-encoding")
    if codings:
        if lengths or len(codings) > 1 or codings[0].lower() != b"chunked" or old:
            raise BadRequestError("the length of the body is not clear")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise BadRequestError("the length of the body is not clear")
    return int(lengths[0])


def _named(headers: Sequence[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """The headers that `Connection` names, which are for the proxy alone."""
    listed = b",".join(_values(headers, b"connection")).lower().split(b",")
    return frozenset(name.strip() for name in listed)


def _values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for each, value in headers if each.lower() == name]


def _parse_target(text: bytes, *, port: int | None) -> Target:
    try:
        return host_list.parse_target(text.decode(), port=port)
    except ValueError as error:
        raise BadRequestError(f"{text[:100].decode(errors='replace')!r}: {error}") from error
