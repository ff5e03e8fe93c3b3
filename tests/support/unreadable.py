"""Real files and directories that cannot be looked at for a while, whoever looks.

A permission would not stop the superuser, so the path is moved aside and something takes its place
on which the system calls fail. Each fault is named by the error that it causes.
"""

import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

Place = Callable[[str], None]
"""Makes what stands in the place of a path."""


def link_to_itself(path: str) -> None:
    os.symlink(path, path)


def link_to_a_name_without_end(path: str) -> None:
    os.symlink("x" * 300, path)


def link_to_memory(path: str) -> None:
    """Not even the superuser can read the first page of a process."""
    os.symlink("/proc/self/mem", path)


def listening_socket(path: str) -> None:
    # Bound by a short name, because the path of a socket may have about a hundred characters.
    here = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{os.path.basename(path)}")
    finally:
        os.close(here)


ANYWHERE: Final[Mapping[str, Place]] = {
    "ELOOP": link_to_itself,
    "ENAMETOOLONG": link_to_a_name_without_end,
}
"""Faults of files and of directories."""

PROJECT_FILES: Final[Mapping[str, Place]] = {
    **ANYWHERE,
    "ENXIO": listening_socket,
    "directory": os.mkdir,
    "pipe": os.mkfifo,
}
"""Faults of files."""

FILES: Final[Mapping[str, Place]] = {**PROJECT_FILES, "EIO": link_to_memory}
"""Faults of files that may be links to anywhere; a project's may not."""


@contextmanager
def unreadable(path: str, place: Place, *, aside: str) -> Generator[None]:
    """Within the scope the path cannot be looked at; what it was waits at `aside`."""
    os.rename(path, aside)
    place(path)
    try:
        yield
    finally:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
        os.rename(aside, path)
