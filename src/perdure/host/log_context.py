"""The Session of the current task, for log lines.

Set where a run begins; tasks that the run starts inherit it. Only logging reads it.
"""

from contextvars import ContextVar
from typing import Final

SESSION: Final[ContextVar[str | None]] = ContextVar("session", default=None)
