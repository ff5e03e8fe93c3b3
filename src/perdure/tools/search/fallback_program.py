"""A search program for machines without ripgrep; it runs as a child process, never in ours.

It takes the few options of ripgrep that tools.search.search uses and answers in the same form. A
process of its own, because Python's expressions can run for ever and nothing else can stop them:
the caller ends it when its time is up. It follows no link and skips hidden names and binary files.
"""

import argparse
import base64
import itertools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import msgspec

from perdure.core.files import glob
from perdure.core.files.glob import IgnoreRule
from perdure.core.limits import (
    READ_CHUNK_BYTES,
    READ_SNIFF_BYTES,
    SEARCH_RECORD_BYTES_MAX,
    SEARCH_SUBMATCHES_MAX,
)
from perdure.schema.value import Value

IGNORE_FILES: Final = (".gitignore", ".ignore")
_FAILED: Final = 2
_BOM: Final = b"\xef\xbb\xbf"


class _Ruled(Value):
    """The ignore rules that a directory adds for everything below it."""

    directory: str
    rules: tuple[IgnoreRule, ...]


class _Waiting(Value):
    """What the walk has yet to come to, and the rules that hold there."""

    path: str
    absolute: str
    ruled: tuple[_Ruled, ...]
    is_directory: bool


class _Line(Value):
    number: int
    offset: int
    text: str


def main(arguments: Sequence[str]) -> int:
    options = _parsed(arguments)
    try:
        pattern = re.compile(options.regexp)
        anywhere = _anywhere(options.regexp)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return _FAILED
    for path in _files_at(options.path):
        if options.files:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
        else:
            _search(path, pattern, anywhere, count_max=options.max_count)
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--regexp", default="")
    parser.add_argument("--max-count", type=int, default=sys.maxsize)
    parser.add_argument("path")
    # What ripgrep must be told is how this program works anyway, or is only a hint.
    for flag in ("--no-config", "--no-messages", "--no-require-git", "--null", "--json"):
        parser.add_argument(flag, action="store_true")
    for hint in ("--sort", "--type-add", "--type"):
        parser.add_argument(hint)
    return parser.parse_args(arguments)


def _files_at(path: str) -> Iterator[str]:
    if os.path.isdir(path):
        yield from _walk(path, _rules_above(os.path.abspath(path)))
    elif os.path.isfile(path):
        yield path


def _walk(directory: str, inherited: tuple[_Ruled, ...]) -> Iterator[str]:
    """Files in path order. What is yet to be visited is kept as a stack: trees may be deep."""
    waiting = [_Waiting(directory, os.path.abspath(directory), inherited, is_directory=True)]
    while waiting:
        here = waiting.pop()
        if not here.is_directory:
            yield here.path
            continue
        ruled = (*here.ruled, *_rules_of(here.absolute))
        below = [
            _Waiting(entry.path, absolute, ruled, entry.is_dir(follow_symlinks=False))
            for entry in _entries(here.path)
            for absolute in [os.path.join(here.absolute, entry.name)]
            if _is_wanted(entry, absolute, ruled)
        ]
        waiting.extend(reversed(below))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_wanted(entry: os.DirEntry[str], absolute: str, ruled: tuple[_Ruled, ...]) -> bool:
    is_directory = entry.is_dir(follow_symlinks=False)
    if entry.name.startswith(".") or not (is_directory or entry.is_file(follow_symlinks=False)):
        return False
    return not _is_ignored(absolute, ruled, is_directory=is_directory)


def _is_ignored(absolute: str, ruled: tuple[_Ruled, ...], *, is_directory: bool) -> bool:
    for level in reversed(ruled):
        relative = absolute.removeprefix(level.directory).lstrip("/")
        verdict = glob.ignored(level.rules, relative, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _rules_above(directory: str) -> tuple[_Ruled, ...]:
    """What the directories above say, outermost first, up to the root of the repository."""
    found: list[_Ruled] = []
    here = directory
    while not os.path.exists(os.path.join(here, ".git")) and here != os.path.dirname(here):
        here = os.path.dirname(here)
        found[:0] = _rules_of(here)
    return tuple(found)


def _rules_of(directory: str) -> list[_Ruled]:
    levels: list[_Ruled] = []
    for name in IGNORE_FILES:
        try:
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                levels.append(_Ruled(directory, glob.parse_ignore(file.read())))
        except OSError:
            continue
    return levels


def _anywhere(expression: str) -> re.Pattern[str] | None:
    """An expression that finds something in a text if the given one does in any of its lines.

    There is none for those that may look beyond their line or care where the text ends.
    """
    if "(?" in expression or "\\A" in expression or "\\Z" in expression:
        return None
    return re.compile(expression, re.MULTILINE)


def _search(
    path: str, pattern: re.Pattern[str], anywhere: re.Pattern[str] | None, *, count_max: int
) -> None:
    try:
        with open(path, "rb") as file:
            if b"\0" in file.peek(READ_SNIFF_BYTES)[:READ_SNIFF_BYTES]:
                return
            if anywhere is not None and not _may_match(file, anywhere):
                return
            found = (_matched(path, line, pattern) for line in _lines(file))
            for record in itertools.islice(filter(None, found), count_max):
                sys.stdout.buffer.write(record + b"\n")
            # Whoever ends this process keeps what was found before.
            sys.stdout.buffer.flush()
    except OSError:
        return


def _may_match(file: BinaryIO, anywhere: re.Pattern[str]) -> bool:
    """Most files hold no match, and one look at all of a file is quicker than one at each line."""
    data = file.read(READ_CHUNK_BYTES)
    file.seek(0)
    if len(data) == READ_CHUNK_BYTES:
        return True
    return anywhere.search(data.decode("utf-8", "surrogateescape")) is not None


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """Each line that is short enough to be worth showing."""
    number, offset = 1, 0
    continued = False
    while data := file.readline(SEARCH_RECORD_BYTES_MAX):
        ended = data.endswith(b"\n")
        if not continued and (ended or len(data) < SEARCH_RECORD_BYTES_MAX):
            mark = len(_BOM) if offset == 0 and data.startswith(_BOM) else 0
            yield _Line(number, offset + mark, data[mark:].decode("utf-8", "surrogateescape"))
        number, offset, continued = number + ended, offset + len(data), not ended


def _matched(path: str, line: _Line, pattern: re.Pattern[str]) -> bytes | None:
    """The record of a line that matches."""
    matches = list(pattern.finditer(line.text.rstrip("\n")))
    if not matches:
        return None
    data = {
        "path": _text(os.fsencode(path)),
        "lines": _text(_bytes(line.text)),
        "line_number": line.number,
        "absolute_offset": line.offset,
        "submatches": _submatches(line.text, matches),
    }
    return msgspec.json.encode({"type": "match", "data": data})


def _submatches(text: str, matches: Sequence[re.Match[str]]) -> list[dict[str, object]]:
    """Where in the line, in bytes. Only as many as are shown: each costs a look at the line."""
    shown = matches[:SEARCH_SUBMATCHES_MAX]
    return [
        {
            "match": _text(_bytes(match[0])),
            "start": len(_bytes(text[: match.start()])),
            "end": len(_bytes(text[: match.end()])),
        }
        for match in shown
    ]


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
