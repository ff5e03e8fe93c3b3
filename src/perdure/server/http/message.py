"""HTTP/1.1 as bytes: response heads, the Date header, and refusals of the transport itself.

Pure. The transport refuses a request without the application when its head is malformed or too
large, when it arrives too slowly, and when there are too many connections or pipelined requests.
"""

import time
from collections.abc import Iterable
from typing import Final

from perdure.protocol import errors
from perdure.schema import codec
from perdure.schema.errors import DomainError
from perdure.server.http.asgi import Header

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
RETRY_SOON: Final[Header] = (b"retry-after", b"1")

_REASONS: Final = {
    101: b"Switching Protocols",
    200: b"OK",
    204: b"No Content",
    206: b"Partial Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    409: b"Conflict",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
    507: b"Insufficient Storage",
}
_STATUS_LINES: Final = {
    status: b"HTTP/1.1 %d %s\r\n" % (status, reason) for status, reason in _REASONS.items()
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


def head(status: int, headers: Iterable[Header], *, date: bytes, framing: bytes) -> bytes:
    """A response head; `framing` is further header lines, each with its line end."""
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    parts = [line]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts += (b"date: ", date, b"\r\n", framing, b"\r\n")
    return b"".join(parts)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def refusal(error: DomainError, *, date: bytes) -> bytes:
    """A whole response, after which the connection is closed."""
    body = codec.encode(error.wire())
    framing = b"content-length: %d\r\nconnection: close\r\n" % len(body)
    headers: tuple[Header, ...] = ((b"content-type", b"application/json"),)
    if errors.is_momentary(error):
        headers += (RETRY_SOON,)
    return head(errors.status_of(error), headers, date=date, framing=framing) + body


def http_date(millis: int) -> bytes:
    """The time as HTTP writes it. `time.strftime` would use the locale's names."""
    at = time.gmtime(millis // 1000)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year:04} {clock} GMT".encode()
