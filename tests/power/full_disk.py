"""Disks that can be filled and freed again under a running server.

The real one is a small tmpfs, which only a privileged user may mount. The other answers like a full
one on command, wherever tests run. What a server promises does not depend on which it is.
"""

import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import Final

from tests.harness.faults.recording_vfs import Fault, RecordingVfs

SIZE: Final = "8m"
_CHUNK: Final = bytes(64 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    fill: Callable[[], None]
    free: Callable[[], None]


class NotPermittedError(Exception):
    """No file system can be mounted here."""


@contextmanager
def small_filesystem(directory: Path) -> Generator[Disk]:
    """A file system of its own at `directory`, with room for SIZE bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    options = f"size={SIZE},mode=700"
    command = ["mount", "-t", "tmpfs", "-o", options, "perdure-test", str(directory)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotPermittedError(str(error)) from error
    ballast = directory / "ballast"
    try:
        yield Disk(fill=lambda: _fill(ballast), free=ballast.unlink)
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextmanager
def answering_like_one(directory: Path) -> Generator[Disk]:
    """SQLite's files below `directory` cannot be written while it is filled."""
    with RecordingVfs(f"{directory}/") as vfs:

        def fill() -> None:
            vfs.fault = Fault("write", 1, ENOSPC, lasts=True)

        def free() -> None:
            vfs.fault = None

        yield Disk(fill=fill, free=free)


def _fill(ballast: Path) -> None:
    """Take everything that is left, down to the last page."""
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(handle, _CHUNK)
    except OSError as error:
        if error.errno != ENOSPC:
            raise
    finally:
        os.close(handle)
