"""Ports for the database and for the processes that share it.

Only the adapter knows which database is used.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")

SqlValue = str | int | float | bytes | None
Row = tuple[SqlValue, ...]


class DatabaseError(Exception):
    """The store failed: disk full, I/O error, not a database. Nothing was committed."""


class UniqueViolationError(DatabaseError):
    """A unique row already exists."""


class Transaction(Protocol):
    """SQL with `:named` parameters. Valid only inside the job it was given to."""

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        """Run one statement; returns the number of changed rows."""
        ...

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]: ...


class Database(Protocol):
    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        """Run `job` in its own transaction; durable when this returns.

        Jobs run one after the other; waiting ones may share a commit. A job that raises is rolled
        back alone. A job may run again from its start after a rollback, so it must change nothing
        but its transaction. A caller that is cancelled meanwhile learns of it when the outcome is
        known; a failure takes precedence. `committed` is called with the result right after the
        commit, in commit order; it must neither raise nor wait.
        """
        ...

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `job` on one consistent snapshot, without waiting for writers."""
        ...

    async def changed_elsewhere(self) -> bool:
        """Whether another process has committed since the last call."""
        ...

    async def empty_log(self) -> bool:
        """Remove what is in the write-ahead log, deleted rows included; whether that was possible.

        It is not while another process is in the middle of reading or writing.
        """
        ...

    async def check_file(self) -> None:
        """Raise DatabaseError if a later start would not find what was committed here.

        Every write is checked before it returns; this is for answers that need no write.
        """
        ...


class Processes(Protocol):
    """Which processes that share this store are alive. A killed one is gone at once."""

    @property
    def me(self) -> str: ...
    def alive(self, process: str) -> bool: ...
    def others(self) -> frozenset[str]:
        """The other processes that are alive."""
        ...

    def beat(self) -> None:
        """Show the others that this process runs, and look which of them do. Once a second."""
        ...

    def silent(self) -> Mapping[str, str]:
        """The others that are alive and do not beat, with words by which a person finds each.

        One may be stopped, or its event loop stands. It may go on at any time.
        """
        ...
