"""A search program for machines without ripgrep; it always runs as a child process.

It takes the options of ripgrep that tools.search.search uses and prints the same format. It is a
separate process because a Python regular expression can run for ever and only killing the process
stops it. It follows no link and skips hidden names and binary files.
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

from perdure.core.files import ignore
from perdure.core.files.ignore import IgnoreRule
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


class _DirectoryRules(Value):
    """The ignore rules of a directory, for everything below it."""

    directory: str
    rules: tuple[IgnoreRule, ...]


class _PendingPath(Value):
    """A path to visit, and the rules that apply there."""

    path: str
    absolute: str
    rules: tuple[_DirectoryRules, ...]
    is_directory: bool


class _Line(Value):
    number: int
    offset: int
    text: str


def main(arguments: Sequence[str]) -> int:
    options = _parse_arguments(arguments)
    try:
        pattern = re.compile(options.regexp)
        prefilter = _compile_prefilter(options.regexp)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return _FAILED
    for path in _files_at(options.path):
        if options.files:
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
        else:
            _search(path, pattern, prefilter, count_max=options.max_count)
    return 0


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--regexp", default="")
    parser.add_argument("--max-count", type=int, default=sys.maxsize)
    parser.add_argument("path")
    # Options for ripgrep that are this program's default or only an optimisation.
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


def _walk(directory: str, inherited: tuple[_DirectoryRules, ...]) -> Iterator[str]:
    """Files in path order. Uses a stack instead of recursion, because trees may be deep."""
    stack = [_PendingPath(directory, os.path.abspath(directory), inherited, is_directory=True)]
    while stack:
        current = stack.pop()
        if not current.is_directory:
            yield current.path
            continue
        rules = (*current.rules, *_read_rules(current.absolute))
        below = [
            _PendingPath(entry.path, absolute, rules, entry.is_dir(follow_symlinks=False))
            for entry in _entries(current.path)
            for absolute in [os.path.join(current.absolute, entry.name)]
            if _is_wanted(entry, absolute, rules)
        ]
        stack.extend(reversed(below))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_wanted(entry: os.DirEntry[str], absolute: str, rules: tuple[_DirectoryRules, ...]) -> bool:
    is_directory = entry.is_dir(follow_symlinks=False)
    if entry.name.startswith(".") or not (is_directory or entry.is_file(follow_symlinks=False)):
        return False
    return not _is_ignored(absolute, rules, is_directory=is_directory)


def _is_ignored(absolute: str, rules: tuple[_DirectoryRules, ...], *, is_directory: bool) -> bool:
    for level in reversed(rules):
        relative = absolute.removeprefix(level.directory).lstrip("/")
        verdict = ignore.ignored(level.rules, relative, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _rules_above(directory: str) -> tuple[_DirectoryRules, ...]:
    """The rules of the directories above, outermost first, up to the repository's root."""
    found: list[_DirectoryRules] = []
    current = directory
    while not os.path.exists(os.path.join(current, ".git")) and current != os.path.dirname(current):
        current = os.path.dirname(current)
        found[:0] = _read_rules(current)
    return tuple(found)


def _read_rules(directory: str) -> list[_DirectoryRules]:
    levels: list[_DirectoryRules] = []
    for name in IGNORE_FILES:
        try:
            with open(
                os.path.join(directory, name),
                encoding="utf-8",
                errors="surrogateescape",
                newline="",
            ) as file:
                levels.append(_DirectoryRules(directory, ignore.parse_ignore(file.read())))
        except OSError:
            continue
    return levels


def _compile_prefilter(expression: str) -> re.Pattern[str] | None:
    """A pattern that matches a whole text if `expression` matches one of its lines.

    None for expressions that depend on more than their own line.
    """
    if "(?" in expression or "\\A" in expression or "\\Z" in expression:
        return None
    return re.compile(expression, re.MULTILINE)


def _search(
    path: str, pattern: re.Pattern[str], prefilter: re.Pattern[str] | None, *, count_max: int
) -> None:
    try:
        with open(path, "rb") as file:
            if b"\0" in file.peek(READ_SNIFF_BYTES)[:READ_SNIFF_BYTES]:
                return
            if prefilter is not None and not _may_match(file, prefilter):
                return
            found = (_match_record(path, line, pattern) for line in _lines(file))
            for record in itertools.islice(filter(None, found), count_max):
                sys.stdout.buffer.write(record + b"\n")
            # Flushed, so that the caller has these matches if it kills this process.
            sys.stdout.buffer.flush()
    except OSError:
        return


def _may_match(file: BinaryIO, prefilter: re.Pattern[str]) -> bool:
    """Whether a file may match; searching it at once is quicker than line by line."""
    data = file.read(READ_CHUNK_BYTES)
    file.seek(0)
    if len(data) == READ_CHUNK_BYTES:
        return True
    return prefilter.search(data.decode("utf-8", "surrogateescape")) is not None


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """The lines that are not too long to show."""
    number, offset = 1, 0
    continued = False
    while data := file.readline(SEARCH_RECORD_BYTES_MAX):
        ended = data.endswith(b"\n")
        if not continued and (ended or len(data) < SEARCH_RECORD_BYTES_MAX):
            mark = len(_BOM) if offset == 0 and data.startswith(_BOM) else 0
            yield _Line(number, offset + mark, data[mark:].decode("utf-8", "surrogateescape"))
        number, offset, continued = number + ended, offset + len(data), not ended


def _match_record(path: str, line: _Line, pattern: re.Pattern[str]) -> bytes | None:
    """The output record of a matching line; None when it does not match."""
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
    """The byte offsets of the first matches in a line."""
    return [
        {
            "match": _text(_bytes(match[0])),
            "start": len(_bytes(text[: match.start()])),
            "end": len(_bytes(text[: match.end()])),
        }
        for match in matches[:SEARCH_SUBMATCHES_MAX]
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
