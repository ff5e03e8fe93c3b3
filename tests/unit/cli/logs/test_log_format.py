"""The log: one line a record, cleaned of escapes and secrets, with the Session it is about."""

import json
import logging
import sys

import pytest

from perdure.cli.logs.log_format import JsonFormatter, TextFormatter
from perdure.host import log_context

CANARY = "canary-83d1f2"


def record(message: str, *values: object, failed: bool = False) -> logging.LogRecord:
    made = logging.LogRecord("perdure.x", logging.WARNING, "f", 1, message, values, None)
    made.created, made.msecs = 1_700_000_000.5, 500.0
    if failed:
        try:
            raise ValueError(f"token={CANARY}")
        except ValueError:
            made.exc_info = sys.exc_info()
    return made


@pytest.mark.parametrize(
    "said",
    [
        f"authorization: Bearer {CANARY}",
        f"https://me:{CANARY}@host/x failed",
        f"password={CANARY}",
        f'{{"api_key": "{CANARY}"}}',
        f"plainly {CANARY}",
    ],
)
@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_no_secret_is_in_a_line(
    said: str, formatter: type[TextFormatter] | type[JsonFormatter]
) -> None:
    line = formatter([CANARY]).format(record("it said %s", said))
    assert CANARY not in line
    assert "it said" in line


def test_a_record_is_one_object_on_one_line() -> None:
    line = JsonFormatter().format(record("two\nlines \x1b[2J\u202e of %s", "x"))
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "logger": "perdure.x",
        "message": "two\nlines \x1b[2J\u202e of x",
    }


def test_what_a_terminal_would_obey_is_not_in_a_line_of_text() -> None:
    line = TextFormatter().format(record("a\x1b]52;c;eA==\x07b\u202e"))
    assert line.endswith("WARNING ab")


def test_an_exception_is_told_without_what_it_must_not_tell() -> None:
    told = json.loads(JsonFormatter().format(record("failed", failed=True)))["exception"]
    assert "ValueError" in told
    assert CANARY not in told
    assert CANARY not in TextFormatter().format(record("failed", failed=True))


def test_the_session_at_hand_is_named_once() -> None:
    token = log_context.SESSION.set("ses_1")
    try:
        assert json.loads(JsonFormatter().format(record("x")))["session"] == "ses_1"
        assert TextFormatter().format(record("x")).endswith("x (ses_1)")
        assert TextFormatter().format(record("drain of ses_1")).count("ses_1") == 1
    finally:
        log_context.SESSION.reset(token)
