"""Which Sessions a process runs on its own, because an earlier process left them unfinished.

A server resumes all of them. A command that a person runs in one directory resumes those of that
directory: it must not spend money or change files elsewhere. A command that only shows or changes
something resumes none. What a client asks this process for is run in any case, and so is what
another process asks for in a Session that this process holds.
"""

from typing import Literal

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.store.tables import session_table

Resumes = Literal["all", "directory", "none"]
"""Which Sessions: all, those of the process's own directory, or none."""


class Resumption(Value):
    scope: Resumes
    directory: str
    """The directory of the process."""

    async def select(self, tx: Transaction, sessions: list[SessionID]) -> list[SessionID]:
        """Those of `sessions` that this process may run without being asked."""
        match self.scope:
            case "all":
                return sessions
            case "none":
                return []
            case "directory":
                return [found for found in sessions if await self._is_here(tx, found)]

    async def _is_here(self, tx: Transaction, session_id: SessionID) -> bool:
        session = await session_table.load(tx, session_id)
        return session is not None and session.location.directory == self.directory
