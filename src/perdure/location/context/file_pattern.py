"""Expands a pattern over paths to the paths that match it.

`*`, `?` and `[...]` match inside one name, hidden names too; `**` as a name of its own matches any
number of directories. A directory that is linked into itself is walked once.

Invariant: a directory that cannot be listed raises OSError; only an absent one has no matches.
"""

import fnmatch
import glob
import os
from collections.abc import Iterator
from typing import Final

from perdure.host.files import cached_files

_ANY_DEPTH: Final = "**"


def find_paths(directory: str, pattern: str) -> Iterator[str]:
    """The paths that match `pattern`, relative to `directory`. Raises OSError."""
    names = [name for name in pattern.split("/") if name]
    if names and names[-1] == _ANY_DEPTH:
        names.append("*")
    yield from _expand("/" if pattern.startswith("/") else directory, tuple(names))


def _expand(base: str, names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        if cached_files.exists(base):
            yield base
        return
    name, rest = names[0], names[1:]
    if name == _ANY_DEPTH:
        for folder in _walk(base):
            yield from _expand(folder, rest)
    elif glob.has_magic(name):
        for found in fnmatch.filter(_list(base), name):
            yield from _expand(os.path.join(base, found), rest)
    else:
        yield from _expand(os.path.join(base, name), rest)


def _walk(top: str) -> Iterator[str]:
    """The directory and all directories below it."""
    waiting, seen = [top], set[tuple[int, int]]()
    while waiting:
        folder = waiting.pop()
        if not cached_files.is_directory(folder):
            continue
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        yield folder
        waiting.extend(os.path.join(folder, name) for name in _list_directories(folder))


def _list_directories(folder: str) -> list[str]:
    """The names in a directory that may be directories: links are looked at later."""
    try:
        with os.scandir(folder) as entries:
            return [
                entry.name
                for entry in entries
                if entry.is_symlink() or entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
