"""Port with which tools record file changes before making them, so that a revert can undo them.

A tool that knows its files names each one. A command does not, so the directory is scanned before
and after it. The implementation decides what is stored; see runtime.files.step_journal.

Invariant: a journal that cannot record something never stops a tool.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol


class Journal(Protocol):
    def changing(
        self, root: str, path: str, data: bytes | None
    ) -> AbstractAsyncContextManager[None]:
        """In this scope the file below `root` becomes `data`; None removes it.

        An OSError that leaves the scope means that the file was not changed.
        """
        ...

    def watching(self) -> AbstractAsyncContextManager[None]:
        """Every change in the Location within this scope is recorded for this call."""
        ...


class NoJournal:
    """Records nothing."""

    def changing(
        self, root: str, path: str, data: bytes | None
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def watching(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


NO_JOURNAL: Final[Journal] = NoJournal()
