"""The Session of the current task, for log lines and the records of child processes.

Set where a run begins; tasks that the run starts inherit it.
"""

from contextvars import ContextVar
from typing import Final

SESSION: Final[ContextVar[str | None]] = ContextVar("session", default=None)
