"""A search program for machines without ripgrep; it runs as a child process, never in ours.

It takes the few options of ripgrep that tools.search uses and answers in the same form. A process
of its own, because Python's expressions can run for ever and nothing else can stop them: the
caller ends it when its time is up. It follows no link and skips hidden names and binary files.
"""

import argparse
import itertools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import msgspec

from perdure.core import path_pattern
from perdure.core.limits import READ_SNIFF_BYTES, SEARCH_RECORD_BYTES_MAX
from perdure.core.path_pattern import IgnoreRule
from perdure.schema.value import Value

IGNORE_FILES: Final = (".gitignore", ".ignore")
_FAILED: Final = 2


class _Ruled(Value):
    """The ignore rules that a directory adds for everything below it."""

    directory: str
    rules: tuple[IgnoreRule, ...]


class _Line(Value):
    number: int
    offset: int
    text: str


def main(arguments: Sequence[str]) -> int:
    options = _parsed(arguments)
    try:
        pattern = re.compile(options.regexp)
    except re.error as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return _FAILED
    for path in _files_at(options.path):
        if options.files:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
        else:
            _search(path, pattern, count_max=options.max_count)
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--regexp", default="")
    parser.add_argument("--max-count", type=int, default=sys.maxsize)
    parser.add_argument("path")
    # What ripgrep must be told is how this program works anyway, or is only a hint.
    for flag in ("--no-config", "--no-require-git", "--null", "--json"):
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
    ruled = (*inherited, *_rules_of(os.path.abspath(directory)))
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or _is_ignored(entry, ruled, is_directory=is_directory):
            continue
        if is_directory:
            yield from _walk(entry.path, ruled)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def _is_ignored(entry: os.DirEntry[str], ruled: tuple[_Ruled, ...], *, is_directory: bool) -> bool:
    absolute = os.path.abspath(entry.path)
    for level in reversed(ruled):
        relative = os.path.relpath(absolute, level.directory)
        verdict = path_pattern.ignored(level.rules, relative, is_directory=is_directory)
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
                levels.append(_Ruled(directory, path_pattern.parse_ignore(file.read())))
        except OSError:
            continue
    return levels


def _search(path: str, pattern: re.Pattern[str], *, count_max: int) -> None:
    try:
        with open(path, "rb") as file:
            if b"\0" in file.peek(READ_SNIFF_BYTES)[:READ_SNIFF_BYTES]:
                return
            found = (_matched(path, line, pattern) for line in _lines(file))
            for record in itertools.islice(filter(None, found), count_max):
                sys.stdout.buffer.write(record + b"\n")
    except OSError:
        return


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """Each line that is short enough to be worth showing."""
    number, offset = 1, 0
    continued = False
    while data := file.readline(SEARCH_RECORD_BYTES_MAX):
        ended = data.endswith(b"\n")
        if not continued and (ended or len(data) < SEARCH_RECORD_BYTES_MAX):
            yield _Line(number, offset, data.decode("utf-8", "replace"))
        number, offset, continued = number + ended, offset + len(data), not ended


def _matched(path: str, line: _Line, pattern: re.Pattern[str]) -> bytes | None:
    """The record of a line that matches."""
    matches = list(pattern.finditer(line.text.rstrip("\n")))
    if not matches:
        return None
    data = {
        "path": {"text": os.fsencode(path).decode("utf-8", "replace")},
        "lines": {"text": line.text},
        "line_number": line.number,
        "absolute_offset": line.offset,
        "submatches": [_submatch(line.text, match) for match in matches],
    }
    return msgspec.json.encode({"type": "match", "data": data})


def _submatch(text: str, match: re.Match[str]) -> dict[str, object]:
    start, end = (len(text[:at].encode()) for at in match.span())
    return {"match": {"text": match[0]}, "start": start, "end": end}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
