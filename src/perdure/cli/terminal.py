"""Prints text on the terminal without control sequences, and asks the user.

Text from a model, a tool or a file may contain sequences that move the cursor, change the window
title, fill the clipboard or reverse the reading order. Every command and the log print through
this module, which removes them. Colours and the status line are written here alone, and only on a
terminal, without NO_COLOR.

Invariant: what others wrote reaches the screen as printable characters, newlines and tabs, in
reading order.
"""

import asyncio
import logging
import os
import re
import stat
import sys
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TextIO

from perdure.schema.codec import JsonValue
from perdure.schema.value import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perdure.cli.style import Span

_LINE_CHARS_MAX: Final = 200
_COLUMNS_MIN: Final = 20
_ERASE_LINE: Final = "\r\x1b[K"
_DIM: Final = "2"
_ANSWER_BYTES_MAX: Final = 1_024

# C0 without tab and newline, DEL, C1, direction controls, lone surrogates.
_UNPRINTABLE: Final = re.compile(
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


class _Status(State):
    """Whether the last line of the terminal is a status line."""

    is_shown: bool = False


class _Question(State):
    """Whether a question waits for what the user types."""

    is_open: bool = False


_status: Final = _Status()
_question: Final = _Question()


class Cleaner:
    """Removes control sequences from text that arrives in pieces, even a split one."""

    def __init__(self) -> None:
        self._state = _State.TEXT

    def feed(self, text: str) -> str:
        if self._state is _State.TEXT and _SEQUENCE_START.search(text) is None:
            return _UNPRINTABLE.sub("", text)
        kept = "".join(character for character in text if self._keeps(character))
        return _UNPRINTABLE.sub("", kept)

    def _keeps(self, character: str) -> bool:
        # A newline ends a sequence, so that an unterminated one hides no more than its line.
        if character == "\n":
            self._state = _State.TEXT
            return True
        before = self._state
        self._state = _next_state(before, character)
        return before is _State.TEXT and self._state is _State.TEXT


def clean(text: str) -> str:
    """Return `text` without control sequences and unprintable characters."""
    return Cleaner().feed(text)


def print_output(text: str) -> None:
    """Print the result of a command on stdout."""
    clear_status()
    sys.stdout.write(clean(text))


def print_spans(spans: "Iterable[Span]", *, as_note: bool = False) -> None:
    """Print styled text: on stdout the result of a command, or on stderr a note about the work."""
    stream = sys.stderr if as_note else sys.stdout
    coloured = has_colour(stream)
    clear_status()
    for text, style in spans:
        cleaned = clean(text)
        if coloured and style.value and cleaned:
            cleaned = _coloured(cleaned, style.value)
        stream.write(cleaned)
    if as_note:
        stream.flush()


def has_colour(stream: TextIO) -> bool:
    """Whether colours are wanted there: a terminal, without NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_output_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def columns() -> int:
    """The width of the terminal."""
    # Imported late: only a terminal needs it.
    import shutil

    return max(shutil.get_terminal_size().columns, _COLUMNS_MIN)


def can_show_status() -> bool:
    """Whether a status line can be shown: stderr is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def show_status(text: str) -> None:
    """Show a line that is replaced by the next one and erased by any other output."""
    if not can_show_status():
        return
    shown = one_line(text)[: columns() - 1]
    sys.stderr.write(f"{_ERASE_LINE}{_coloured(shown, _DIM)}")
    sys.stderr.flush()
    _status.is_shown = True


def clear_status() -> None:
    """Erase the status line, if one is shown."""
    if _status.is_shown:
        _status.is_shown = False
        sys.stderr.write(_ERASE_LINE)
        sys.stderr.flush()


def as_json(value: JsonValue, *, indent: int | None = None) -> str:
    """Encode `value` as ASCII JSON. Control characters are escaped, so `clean` removes nothing."""
    import json

    separators = (",", ":") if indent is None else None
    return json.dumps(value, indent=indent, separators=separators).replace("\x7f", "\\u007f")


def print_note(text: str) -> None:
    """Print a message about the work on stderr."""
    clear_status()
    sys.stderr.write(clean(text))
    sys.stderr.flush()


def print_problem(text: str) -> None:
    """Print why a command failed on stderr, without secrets: it may quote files and answers."""
    # Imported late: a command that succeeds does not need it.
    from perdure.schema import redaction

    print_note(f"perdure: {redaction.redact_message(text)}\n")


class LogFormatter(logging.Formatter):
    """Cleans log lines, which quote files, providers and requests; removes secrets."""

    def format(self, record: logging.LogRecord) -> str:
        # Imported late: a command that logs nothing does not need it.
        from perdure.schema import redaction

        return clean(redaction.redact_message(super().format(record)))


def clean_warnings() -> None:
    """Clean log messages also when no log handler is configured."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter())


def one_line(text: str) -> str:
    """Return `text` on one line, cut to a readable length."""
    line = _SPACES.sub(" ", clean(text)).strip()
    return line if len(line) <= _LINE_CHARS_MAX else f"{line[:_LINE_CHARS_MAX]}..."


def _coloured(text: str, code: str) -> str:
    """Text in a style that ends with each line, so that no style runs on."""
    lines = text.split("\n")
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else "" for line in lines)


def is_interactive() -> bool:
    """Return whether stdin and stderr are a terminal, so that the user can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def is_input_piped() -> bool:
    """Return whether stdin is a pipe or a file, so that it may hold a part of the prompt."""
    if sys.stdin is None:
        return False
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


async def ask(question: str) -> str:
    """Ask and return the typed line, empty at the end of input. May be cancelled at any time.

    Keys that were typed before the question was shown do not answer it.
    """
    source = sys.stdin.fileno()
    _drop_typed(source)
    print_note(question)
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(source, typed.set)
    _question.is_open = True
    try:
        await typed.wait()
    finally:
        _question.is_open = False
        loop.remove_reader(source)
    # A terminal delivers whole lines, so this read does not block.
    return os.read(source, _ANSWER_BYTES_MAX).decode(errors="replace").strip()


def is_asking() -> bool:
    """Return whether a question waits for what the user types."""
    return _question.is_open


def _drop_typed(source: int) -> None:
    if os.isatty(source):
        # Imported late: only a question needs it.
        import termios

        termios.tcflush(source, termios.TCIFLUSH)


def _next_state(state: _State, character: str) -> _State:
    match state:
        case _State.TEXT:
            return _state_after_text(character)
        case _State.ESCAPE:
            return _state_after_escape(character)
        case _State.DESIGNATION:
            return _State.DESIGNATION if " " <= character <= "/" else _State.TEXT
        case _State.SEQUENCE:
            return _State.SEQUENCE if " " <= character <= "?" else _end_sequence(character)
        case _State.STRING:
            if character in {"\x07", "\x9c"}:
                return _State.TEXT
            return _State.STRING_ESCAPE if character == "\x1b" else _State.STRING
        case _State.STRING_ESCAPE:
            return _State.TEXT if character == "\\" else _state_after_escape(character)


def _state_after_text(character: str) -> _State:
    if character == "\x1b":
        return _State.ESCAPE
    if character == "\x9b":
        return _State.SEQUENCE
    return _State.STRING if character in _STRING_OPENERS_C1 else _State.TEXT


def _state_after_escape(character: str) -> _State:
    if character == "[":
        return _State.SEQUENCE
    if character in _STRING_OPENERS:
        return _State.STRING
    return _State.DESIGNATION if " " <= character <= "/" else _end_sequence(character)


def _end_sequence(character: str) -> _State:
    """Return the state after a character that ends a sequence or cannot be part of one."""
    return _State.ESCAPE if character == "\x1b" else _State.TEXT
