"""The request log: which answers have a line, what it says, and that a line is one line."""

import asyncio
import json

import pytest

from perdure.cli.logs.request_log import RequestLog
from perdure.testing.manual_clock import ManualClock


class Written:
    """Collects what is written, write by write."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)

    @property
    def lines(self) -> list[str]:
        return "".join(self.texts).splitlines()


def make_log(written: Written, *, form: str = "text", level: str = "info") -> RequestLog:
    return RequestLog(form=form, level=level, write=written, clock=ManualClock(1_700_000_000_123))


async def test_lines_are_written_together_after_a_moment() -> None:
    written = Written()
    done = asyncio.Event()

    def write(text: str) -> None:
        written(text)
        done.set()

    log = RequestLog(form="text", level="info", write=write)
    log("GET", b"/api/session", 200, 0.0012)
    log("POST", b"/api/session", 503, 0.5)
    assert written.texts == []
    await asyncio.wait_for(done.wait(), 10)
    assert len(written.texts) == 1
    first, second = written.lines
    assert first.endswith(" INFO GET /api/session 200 1.2 ms")
    assert second.endswith(" WARNING POST /api/session 503 500.0 ms")


async def test_many_lines_do_not_wait() -> None:
    written = Written()
    log = make_log(written)
    for _ in range(600):
        log("GET", b"/api/session", 200, 0)
    assert len(written.lines) >= 512
    log.flush()
    assert len(written.lines) == 600


async def test_json_lines_have_the_parts_as_fields() -> None:
    written = Written()
    log = make_log(written, form="json")
    log("GET", b"/api/session", 404, 0.0021)
    log.flush()
    (line,) = written.lines
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "info",
        "logger": "perdure.request",
        "message": "GET /api/session 404",
        "method": "GET",
        "path": "/api/session",
        "status": 404,
        "milliseconds": 2.1,
    }


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("debug", ["/api/health 200", "/api/health/ready 503", "/api/session 200", "/x 500"]),
        ("info", ["/api/health/ready 503", "/api/session 200", "/x 500"]),
        ("warning", ["/api/health/ready 503", "/x 500"]),
        ("error", ["/api/health/ready 503", "/x 500"]),
    ],
)
async def test_the_level_decides_which_answers_have_a_line(level: str, expected: list[str]) -> None:
    written = Written()
    log = make_log(written, level=level)
    log("GET", b"/api/health", 200, 0)
    log("GET", b"/api/health/ready", 503, 0)
    log("GET", b"/api/session", 200, 0)
    log("GET", b"/x", 500, 0)
    log.flush()
    assert [
        line.partition(" GET ")[2].removesuffix(" 0.0 ms") for line in written.lines
    ] == expected


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "path",
    [b"/\x1b[2J", b"/a\nINFO GET /forged 200", b"/\xff\xfe", b"/\x9b31m", b"/" + b"a" * 9_000],
)
async def test_a_hostile_path_is_one_printable_line(path: bytes, form: str) -> None:
    written = Written()
    log = make_log(written, form=form)
    log("GET", path, 400, 0)
    log.flush()
    (text,) = written.texts
    assert text.count("\n") == 1
    assert text.removesuffix("\n").isprintable()
    assert text.isascii()
    assert len(text) < 2_500
