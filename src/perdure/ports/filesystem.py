"""Files, whole or by ranges. Nothing here decides which of them may be touched."""

from collections.abc import Sequence
from typing import Protocol

from perdure.schema.value import Value


class FileStat(Value, kw_only=True):
    is_directory: bool
    is_file: bool
    size: int
    mode: int
    modified_ns: int


class Filesystem(Protocol):
    """Paths are absolute. Failures are the standard OSError subclasses."""

    async def stat(self, path: str) -> FileStat: ...
    async def are_files(self, paths: Sequence[str]) -> Sequence[bool]:
        """For each whether it is a regular file; cheapest where processes follow each other.

        What cannot be looked at is none.
        """
        ...

    async def real_path(self, path: str) -> str:
        """Every symbolic link resolved; the last parts may not exist."""
        ...

    async def read(self, path: str, *, offset: int = 0, bytes_max: int | None = None) -> bytes: ...
    async def list(self, path: str) -> Sequence[tuple[str, FileStat]]:
        """Direct children by name, in name order; a link is described by its target."""
        ...

    async def write_atomic(self, path: str, data: bytes) -> None:
        """Replace or create `path` in one step; an existing file's mode is kept."""
        ...

    async def create_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> None: ...
    async def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file that is there."""
        ...

    async def make_directories(self, path: str) -> None: ...
    async def remove(self, path: str) -> None: ...
    def beneath(self, root: str) -> "Filesystem":
        """The part of the disk below the canonical directory `root`, without links.

        A path that has a link in it, whoever put it there and whenever, fails with ELOOP, and one
        that is not below `root` with EXDEV; nothing is touched then. `real_path` works as before.
        """
        ...
