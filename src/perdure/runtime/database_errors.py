"""The policy on a store that fails: what is logged, what is retried, what ends.

A DatabaseError means that nothing was committed: the disk is full, fails or is locked.
* The request of a client fails with it; the client decides whether to try again.
* A drain ends with it and is reported as failed. What it owes stays on disk, and the next wake or
  start continues with it (runtime.turn.ownership, runtime.drain.drain).
* Work that no later event would start again is retried at a fixed interval: `retry_until_stored`.
* Work that can be left undone is left undone: `TolerateFailure`.
An outage is logged when it begins and when it ends, not once for each attempt. The health report
shows it while it lasts (runtime.ops.health).
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.core import limits
from perdure.ports import Clock, DatabaseError

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def retry_until_stored(work: Callable[[], Awaitable[T]], *, what: str, clock: Clock) -> T:
    """Repeat `work` from its start until the store does not fail; `what` names it in the log.

    The interval does not grow: a disk that is freed or mounted again is used within seconds.
    """
    outage = OutageLog(what)
    while True:
        try:
            result = await work()
        except DatabaseError as error:
            outage.log_failure(error)
        else:
            outage.log_recovery()
            return result
        await clock.sleep(limits.STORAGE_RETRY_SECONDS)


class OutageLog:
    """Logs the first failure of an outage and its end, and nothing in between."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.failing = False

    def log_failure(self, error: DatabaseError | OSError) -> None:
        if not self.failing:
            logger.warning("%s failed and is retried: %s", self._what, error)
        self.failing = True

    def log_recovery(self) -> None:
        if self.failing:
            logger.info("%s works again", self._what)
        self.failing = False


class TolerateFailure:
    """A scope whose work is given up, with a warning, when the store fails.

    `what` says what is not done. `also` are further errors that end the work in the same way.
    """

    def __init__(self, what: str, *also: type[Exception]) -> None:
        self._what = what
        self._errors = (DatabaseError, *also)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, self._errors):
            return False
        logger.warning("%s: %s", self._what, error)
        return True
