"""The limit on log lines of one kind: a fault that repeats does not fill the disk."""

import logging

from perdure.cli.logs.log_limit import LineLimit
from perdure.core import limits

MAX = limits.LOG_LINES_PER_KIND_MAX


def record(line: int, at: float, *, level: int = logging.WARNING) -> logging.LogRecord:
    made = logging.LogRecord("perdure.x", level, "f.py", line, "failed %s", ("here",), None)
    made.created = at
    return made


def written(limit: LineLimit, records: list[logging.LogRecord]) -> list[str]:
    return [each.getMessage() for each in records if limit.filter(each)]


def test_a_line_that_repeats_is_written_a_few_times_and_then_counted() -> None:
    limit = LineLimit()
    first = written(limit, [record(1, 100 + n / 1000) for n in range(MAX * 20)])
    assert len(first) == MAX
    assert first[0] == "failed here"
    assert first[-1] == f"failed here (more of this kind are left out for {SECONDS} s)"
    second = written(limit, [record(1, 100 + SECONDS), record(1, 101 + SECONDS)])
    assert second == [
        f"failed here ({MAX * 19} lines of this kind were left out before)",
        "failed here",
    ]


def test_another_place_has_lines_of_its_own_and_debugging_is_not_limited() -> None:
    limit = LineLimit()
    written(limit, [record(1, 100) for _ in range(MAX + 1)])
    assert written(limit, [record(2, 100)]) == ["failed here"]
    debug = [record(3, 100, level=logging.DEBUG) for _ in range(MAX * 3)]
    assert len(written(limit, debug)) == MAX * 3


def test_a_clock_that_is_set_back_does_not_silence_the_log() -> None:
    limit = LineLimit()
    written(limit, [record(1, 1_000) for _ in range(MAX * 2)])
    assert len(written(limit, [record(1, 10), record(1, 11)])) == 2


def test_the_places_that_are_counted_are_bounded() -> None:
    limit = LineLimit()
    lines = limits.LOG_KINDS_MAX * 3
    assert len(written(limit, [record(line, 100) for line in range(lines)])) == lines


SECONDS = limits.LOG_KIND_SECONDS
