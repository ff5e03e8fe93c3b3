"""A database that fails when it is told to: before a write, at its commit, or after it.

It stands between a runtime and its real database. Which operation fails, and how, is a plan: data,
or a function of the operation's number. Nothing is drawn here, and nothing else is changed.

Invariant: a write that fails before or at its commit leaves nothing behind. One that fails after it
is durable although its caller was told otherwise, and no listener was told of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, TypeVar

from perdure.ports import Clock, Database, DatabaseError, Transaction
from perdure.schema.value import Value

T = TypeVar("T")

Moment = Literal["before", "at-commit", "after-commit"]


class InjectedDatabaseError(DatabaseError):
    """Made on purpose."""


class DatabaseFault(Value, kw_only=True):
    """What happens to one operation. A read fails before it runs, whatever the moment."""

    fails: Moment | None = None
    """None: it is only late."""
    delay_seconds: float = 0.0
    message: str = "the disk failed on purpose"
    out_of_memory: bool = False
    """Fail with a MemoryError instead of a DatabaseError."""


Faults = Mapping[int, DatabaseFault] | Callable[[int], DatabaseFault | None]
"""Operations by their number, from 1 on, or a function of it."""

_NONE: Final[Mapping[int, DatabaseFault]] = {}


class DatabasePlan(Value, kw_only=True):
    writes: Faults = _NONE
    reads: Faults = _NONE


class FaultyDatabase:
    """Implements ports.Database. The plan may be changed at any time; numbers go on."""

    def __init__(
        self, database: Database, plan: DatabasePlan | None = None, *, clock: Clock
    ) -> None:
        self._database = database
        self._clock = clock
        self.plan = plan or DatabasePlan()
        self.writes = 0
        """How many were asked for."""
        self.reads = 0
        self.failed = 0
        """How many operations were made to fail."""

    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        self.writes += 1
        fault = _fault(self.plan.writes, self.writes)
        if fault is None:
            return await self._database.write(job, committed=committed)
        await self._delay(fault)
        match fault.fails:
            case None:
                return await self._database.write(job, committed=committed)
            case "before":
                raise self._error(fault)
            case "at-commit":
                return await self._database.write(self._undone(job, fault))
            case "after-commit":
                # Not announced: the caller does not know that there is anything to announce.
                await self._database.write(job)
                raise self._error(fault)

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        self.reads += 1
        fault = _fault(self.plan.reads, self.reads)
        if fault is not None:
            await self._delay(fault)
            if fault.fails is not None:
                raise self._error(fault)
        return await self._database.read(job)

    async def empty_log(self) -> bool:
        return await self._database.empty_log()

    async def check_file(self) -> None:
        await self._database.check_file()

    async def changed_elsewhere(self) -> bool:
        return await self._database.changed_elsewhere()

    def _undone(
        self, job: Callable[[Transaction], Awaitable[T]], fault: DatabaseFault
    ) -> Callable[[Transaction], Awaitable[T]]:
        error = self._error(fault)

        async def undone(tx: Transaction) -> T:
            await job(tx)
            raise error

        return undone

    async def _delay(self, fault: DatabaseFault) -> None:
        if fault.delay_seconds > 0:
            await self._clock.sleep(fault.delay_seconds)

    def _error(self, fault: DatabaseFault) -> InjectedDatabaseError | MemoryError:
        self.failed += 1
        kind = MemoryError if fault.out_of_memory else InjectedDatabaseError
        return kind(fault.message)


def _fault(faults: Faults, number: int) -> DatabaseFault | None:
    return faults(number) if callable(faults) else faults.get(number)
