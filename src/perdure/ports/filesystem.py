"""Port for files. It does not decide which files may be accessed."""

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
        """For each path whether it is a regular file; fastest if siblings are adjacent.

        A path that cannot be examined counts as no file.
        """
        ...

    async def real_path(self, path: str) -> str:
        """The path with all symbolic links resolved; its last parts may not exist."""
        ...

    async def read(self, path: str, *, offset: int = 0, bytes_max: int | None = None) -> bytes: ...
    async def list(self, path: str) -> Sequence[tuple[str, FileStat]]:
        """Direct children in name order; for a link, the stat of its target."""
        ...

    async def write_atomic(self, path: str, data: bytes) -> None:
        """Replace or create `path` atomically; an existing file keeps its mode."""
        ...

    async def create_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> None: ...
    async def append(self, path: str, data: bytes) -> None:
        """Append to an existing file."""
        ...

    async def make_directories(self, path: str) -> None: ...
    async def remove(self, path: str) -> None: ...
    def confined_to(self, root: str) -> "Filesystem":
        """The file system below the canonical directory `root`, without following links.

        A path with a link in it fails with ELOOP, also if the link was just created, and a path
        that is not below `root` with EXDEV; nothing is changed then. `real_path` works as before.
        """
        ...
