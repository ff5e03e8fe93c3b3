"""A terminal of a given width: what a person sees of a program, as text with marked styles.

It knows what `cli.terminal` writes: text, newlines, carriage returns, erased lines and styles. Any
other control character fails the test.
"""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATIENCE_SECONDS: Final = 30
_PIECE: Final = re.compile(
    r"\x1b\[(?P<codes>[\d;]*)m|(?P<erase>\x1b\[K)|(?P<text>[^\x1b])", re.DOTALL
)
_STYLES: Final = {
    "0": "",
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    "31": "red",
    "32": "green",
    "33": "yellow",
    "36": "cyan",
}
_CHANGING: Final = (
    (re.compile(r"ses_[0-9A-Za-z]{26}"), "ses_" + "0" * 26),
    (re.compile(r"\d+\.\d s\b"), "0.0 s"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-01-01 00:00"),
)
"""What differs from run to run, and what stands for it."""


def render(output: str, columns: int) -> list[str]:
    """The lines on the screen. A change of style is written as `{green}`, its end as `{}`."""
    for pattern, constant in _CHANGING:
        output = pattern.sub(constant, output)
    lines: list[list[tuple[str, str]]] = [[]]
    style, column, at = "", 0, 0
    while at < len(output):
        match = _PIECE.match(output, at)
        assert match is not None, f"a control sequence reached the screen: {output[at : at + 20]!r}"
        at = match.end()
        if match["codes"] is not None:
            style = _STYLES[match["codes"] or "0"]
        elif match["erase"] is not None:
            del lines[-1][column:]
        elif match["text"] == "\r":
            column = 0
        elif match["text"] == "\n":
            lines.append([])
            column = 0
        else:
            assert match["text"].isprintable(), f"{match['text']!r} reached the screen"
            if column == columns:
                lines.append([])
                column = 0
            lines[-1][column : column + 1] = [(match["text"], style)]
            column += 1
    return [_mark(line).rstrip() for line in lines]


def record(
    command: Sequence[str],
    *,
    columns: int,
    rows: int = 40,
    directory: Path,
    variables: dict[str, str],
    answers: Sequence[tuple[str, str]] = (),
) -> str:
    """Run a program at a terminal; type each answer when its question is on the screen."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(columns), "LINES": str(rows), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={**variables, **size},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    waiting = list(answers)
    shown, deadline = "", time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            ready, _, _ = select.select([ours], [], [], 0.5)
            piece = _read(ours) if ready else b""
            if ready and not piece:
                break
            shown += piece.decode()
            if waiting and shown.endswith(waiting[0][0]):
                os.write(ours, waiting.pop(0)[1].encode())
        assert process.wait(PATIENCE_SECONDS) is not None
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert not waiting, f"{waiting[0][0]!r} was not shown: {shown!r}"
    return shown.replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        # The last program at the terminal has ended.
        return b""


def _mark(line: list[tuple[str, str]]) -> str:
    marked, current = "", ""
    for character, style in line:
        if style != current:
            marked += f"{{{style}}}"
            current = style
        marked += character
    return marked if not current else f"{marked}{{}}"
