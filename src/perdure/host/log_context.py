"""Which Session the work at hand is for, so that a log line can say it.

Set where a run begins; everything that the run awaits or starts inherits it. Nothing decides by it.
"""

from contextvars import ContextVar
from typing import Final

SESSION: Final[ContextVar[str | None]] = ContextVar("session", default=None)
