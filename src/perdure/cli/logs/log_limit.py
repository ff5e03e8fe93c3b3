"""Limits how often one place of the program writes to the log.

A fault that repeats, such as a full table of open files, would otherwise fill the disk and keep the
process busy. The last line that is written says that others follow; the first one after the pause
says how many were left out. Debug lines are not limited: they were asked for.
"""

import logging

from perdure.core import limits
from perdure.schema.value import State

_Kind = tuple[str, int, str, int]
"""A place of the program: its logger, its level, its file and its line."""


class _Span(State):
    begun: float
    lines: int = 0


class LineLimit(logging.Filter):
    """A filter for the handler of a log, so that it counts the lines of all loggers."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: dict[_Kind, _Span] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        kind = (record.name, record.levelno, record.pathname, record.lineno)
        span = self._spans.get(kind)
        if span is None or not 0 <= record.created - span.begun < limits.LOG_KIND_SECONDS:
            left_out = 0 if span is None else span.lines - limits.LOG_LINES_PER_KIND_MAX
            span = self._begin(kind, record.created)
            if left_out > 0:
                _add(record, f"{left_out} lines of this kind were left out before")
        span.lines += 1
        if span.lines == limits.LOG_LINES_PER_KIND_MAX:
            _add(record, f"more of this kind are left out for {limits.LOG_KIND_SECONDS} s")
        return span.lines <= limits.LOG_LINES_PER_KIND_MAX

    def _begin(self, kind: _Kind, now: float) -> _Span:
        if len(self._spans) >= limits.LOG_KINDS_MAX:
            self._spans.clear()
        span = self._spans[kind] = _Span(now)
        return span


def _add(record: logging.LogRecord, note: str) -> None:
    record.msg, record.args = f"{record.getMessage()} ({note})", ()
