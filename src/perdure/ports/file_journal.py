"""Where tools say which files they change, before they do: so that a revert can take it back.

A tool that knows its files names each one. A command does not, so the directory is looked at before
and after it. What is kept, and where, is decided by whoever hands out the journal; see
runtime.files.step_journal.

Invariant: a journal that cannot keep something never keeps a tool from its work.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol


class Journal(Protocol):
    def changing(
        self, root: str, path: str, data: bytes | None
    ) -> AbstractAsyncContextManager[None]:
        """The file, reached below `root`, becomes `data` in this scope; None removes it.

        An OSError that leaves the scope says that it did not.
        """
        ...

    def watching(self) -> AbstractAsyncContextManager[None]:
        """Whatever changes in the Location in this scope is a change of this call."""
        ...


class NoJournal:
    """Keeps nothing."""

    def changing(
        self, root: str, path: str, data: bytes | None
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def watching(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


NO_JOURNAL: Final[Journal] = NoJournal()
