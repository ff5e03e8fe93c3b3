"""The database, and which processes share it.

Which database it is, only its adapter knows.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")

SqlValue = str | int | float | bytes | None
Row = tuple[SqlValue, ...]


class DatabaseError(Exception):
    """The store failed: disk full, I/O error, not a database. Nothing was committed."""


class UniqueViolationError(DatabaseError):
    """A row that must be the only one already is."""


class Transaction(Protocol):
    """SQL with `:named` parameters. Valid only inside the job it was given to."""

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        """Run one statement; how many rows it changed."""
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
        """Run `job` in a transaction of its own; durable when this returns.

        Jobs run one after the other; waiting ones may share a commit. A job that raises is rolled
        back alone. A job may be run again from its start, when what it did before was rolled back:
        it must touch nothing but its transaction. Cancelling the caller does not undo a job that
        has been accepted. `committed` is called with the result right after the commit, in commit
        order, whether or not the caller is still there; it must neither raise nor wait.
        """
        ...

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `job` on one consistent view, without waiting for writers."""
        ...

    async def changed_elsewhere(self) -> bool:
        """Whether another process has committed since this was last asked."""
        ...


class Processes(Protocol):
    """Which processes that share this store are alive. Exact: a killed one is gone at once."""

    @property
    def me(self) -> str: ...
    def alive(self, process: str) -> bool: ...
    def others(self) -> frozenset[str]:
        """The other processes that are alive now."""
        ...
