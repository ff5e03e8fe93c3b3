"""Showing text that somebody else wrote, and asking the person at the terminal.

A model, a tool or a file may contain sequences that move the cursor, retitle the window, fill the
clipboard or reverse the reading order. None of them reaches the screen: every command says what it
says through here, and so does the log.

Invariant: what is shown consists of printable characters, newlines and tabs, in reading order.
"""

import asyncio
import logging
import os
import re
import sys
from enum import Enum, auto
from typing import Final

from perdure.schema.codec import JsonValue

_LINE_CHARS_MAX: Final = 200
_ANSWER_BYTES_MAX: Final = 1_024

# C0 but tab and newline, DEL, C1, the controls of direction, lone halves of surrogate pairs.
_UNSHOWN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SEQUENCE_START: Final = re.compile("[\x1b\x80-\x9f]")
_SPACES: Final = re.compile(r"\s+")
_STRING_OPENERS: Final = frozenset("]P^_X")  # after ESC: OSC, DCS, PM, APC, SOS
_STRING_OPENERS_C1: Final = frozenset("\x9d\x90\x9e\x9f\x98")


class _State(Enum):
    TEXT = auto()
    ESCAPE = auto()  # after ESC
    DESIGNATION = auto()  # after ESC and a mark such as "(": one more letter follows
    SEQUENCE = auto()  # inside CSI, up to its final letter
    STRING = auto()  # inside OSC or DCS, up to its terminator
    STRING_ESCAPE = auto()  # after ESC inside one


class Cleaner:
    """Cleans text that arrives in pieces: a sequence cut in two is still a sequence."""

    def __init__(self) -> None:
        self._state = _State.TEXT

    def feed(self, text: str) -> str:
        if self._state is _State.TEXT and _SEQUENCE_START.search(text) is None:
            return _UNSHOWN.sub("", text)
        kept = "".join(character for character in text if self._keeps(character))
        return _UNSHOWN.sub("", kept)

    def _keeps(self, character: str) -> bool:
        # A sequence never spans lines: one that is not ended must not hide what follows.
        if character == "\n":
            self._state = _State.TEXT
            return True
        before = self._state
        self._state = _after(before, character)
        return before is _State.TEXT and self._state is _State.TEXT


def clean(text: str) -> str:
    """`text` as it may be shown."""
    return Cleaner().feed(text)


def say(text: str) -> None:
    """Show the result of a command, on stdout."""
    sys.stdout.write(clean(text))


def as_json(value: JsonValue, *, indent: int | None = None) -> str:
    """JSON that loses nothing when it is said: pure ASCII, every control character an escape."""
    import json

    separators = (",", ":") if indent is None else None
    return json.dumps(value, indent=indent, separators=separators).replace("\x7f", "\\u007f")


def note(text: str) -> None:
    """Show something about it, on stderr."""
    sys.stderr.write(clean(text))
    sys.stderr.flush()


class LogFormatter(logging.Formatter):
    """Lines of the log, which quote files, providers and requests."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


def clean_warnings() -> None:
    """Clean also what is logged where nobody set a log up."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter())


def one_line(text: str) -> str:
    """`text` on one line of bearable length."""
    line = _SPACES.sub(" ", clean(text)).strip()
    return line if len(line) <= _LINE_CHARS_MAX else f"{line[:_LINE_CHARS_MAX]}..."


def is_attended() -> bool:
    """Whether a person can be asked: somebody reads stderr and types on stdin."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


async def ask(question: str) -> str:
    """The line typed in answer; empty at the end of input. Cancelling it leaves nothing behind."""
    note(question)
    loop = asyncio.get_running_loop()
    source = sys.stdin.fileno()
    typed = asyncio.Event()
    loop.add_reader(source, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(source)
    # A terminal hands over whole lines, so this does not wait.
    return os.read(source, _ANSWER_BYTES_MAX).decode(errors="replace").strip()


def _after(state: _State, character: str) -> _State:
    match state:
        case _State.TEXT:
            return _opened(character)
        case _State.ESCAPE:
            return _escaped(character)
        case _State.DESIGNATION:
            return _State.DESIGNATION if " " <= character <= "/" else _State.TEXT
        case _State.SEQUENCE:
            return _State.SEQUENCE if " " <= character <= "?" else _interrupted(character)
        case _State.STRING:
            if character in {"\x07", "\x9c"}:
                return _State.TEXT
            return _State.STRING_ESCAPE if character == "\x1b" else _State.STRING
        case _State.STRING_ESCAPE:
            return _State.TEXT if character == "\\" else _escaped(character)


def _opened(character: str) -> _State:
    if character == "\x1b":
        return _State.ESCAPE
    if character == "\x9b":
        return _State.SEQUENCE
    return _State.STRING if character in _STRING_OPENERS_C1 else _State.TEXT


def _escaped(character: str) -> _State:
    if character == "[":
        return _State.SEQUENCE
    if character in _STRING_OPENERS:
        return _State.STRING
    return _State.DESIGNATION if " " <= character <= "/" else _interrupted(character)


def _interrupted(character: str) -> _State:
    """A final letter ends a sequence, and so does anything that cannot be part of one."""
    return _State.ESCAPE if character == "\x1b" else _State.TEXT
