"""An event loop for simulations: virtual time, drawn order, processes that can be killed.

Time jumps to the next timer as soon as nothing is ready. Which of several ready callbacks runs is
drawn, so that one seed is one interleaving. Every callback belongs to the simulated process in
whose context it was made; a killed process runs no further callback, not even its cleanup.
There is no input or output: work for a thread runs on the loop, a little later.

Invariant: equal seeds and equal programs give equal runs, whatever the machine does meanwhile.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple

from perdure.schema.value import State

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_SHUFFLES: Final = (0.0, 0.15, 1.0)
"""How often a run picks another callback than the oldest: never, sometimes, always."""
_THREAD_SECONDS: Final = (0.0, 0.001, 0.01, 0.2)
"""How long what would run in a thread takes: a warm disk, or one that is busy."""
_END_SECONDS: Final = 10.0
_ENDS_MAX: Final = 10


class DeadlockError(Exception):
    """Nothing is ready and no timer is set: every waiting task would wait for ever."""


class VirtualProcess(State):
    """A simulated process, as far as the loop knows it."""

    name: str
    died: asyncio.Future[None]
    alive: bool = True
    callbacks_left: int | None = None


_PROCESS: ContextVar[VirtualProcess | None] = ContextVar("process", default=None)


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance
        self._shuffle = chance.choice(_SHUFFLES)
        self._now = 0.0
        self._numbers = itertools.count(1)
        self._due: list[_Callback | _Timer] = []
        self._timers: list[tuple[float, int, _Timer]] = []
        self._tasks: list[_Task[Any]] = []
        self._lost: list[_Callback | _Timer] = []
        self._ending = False
        self.callbacks = 0
        self.complaints: list[str] = []
        """What asyncio would have logged: exceptions that were never retrieved."""
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._complained)

    # ---- processes ------------------------------------------------------------------------------

    def virtual_process(self, name: str) -> VirtualProcess:
        return VirtualProcess(name, self.create_future())

    def spawn(
        self, virtual_process: VirtualProcess | None, work: Coroutine[Any, Any, T]
    ) -> asyncio.Task[T]:
        """Start `work` inside a process; None is outside of all processes."""
        context = copy_context()
        context.run(_PROCESS.set, virtual_process)
        return self.create_task(work, context=context)

    def kill(self, virtual_process: VirtualProcess) -> None:
        """No callback of this process runs any more."""
        if virtual_process.alive:
            virtual_process.alive = False
            virtual_process.died.set_result(None)

    def kill_after(self, virtual_process: VirtualProcess, callbacks: int) -> None:
        """Kill a process after this many more of its callbacks: at an arbitrary await."""
        virtual_process.callbacks_left = callbacks

    def end_killed_tasks(self) -> None:
        """End the tasks of killed processes, after the run is over."""
        self._ending = True
        # Without the callbacks that were dropped their tasks could not move, not even to end.
        self._due += self._lost
        for _ in range(_ENDS_MAX):
            for task in self._tasks:
                task.cancel()
            self.call_later(_END_SECONDS, self.stop)
            self.run_forever()
            self._tasks = [task for task in self._tasks if not task.done()]
            if not self._tasks:
                return

    # ---- what asyncio asks of a loop ------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = _Callback(callback, args, self, copy_context() if context is None else context)
        self._due.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        held = copy_context() if context is None else context
        timer = _Timer(when, callback, args, self, context=held)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        async def work() -> T:
            await asyncio.sleep(self._chance.choice(_THREAD_SECONDS))
            return func(*args)

        return self.create_task(work())

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(next(self._numbers), loop=self)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> asyncio.Future[T]:
        assert isinstance(work, Coroutine)
        task = _Task(next(self._numbers), work, loop=loop, **options)
        # Kept: a task of a killed process would run its cleanup if it were collected.
        self._tasks.append(task)
        if len(self._tasks) > 1_000:
            self._tasks = [kept for kept in self._tasks if not kept.done()]
        return task

    def _complained(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self._ending:
            self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _run_once(self) -> None:
        """One callback. BaseEventLoop calls this until it is stopped."""
        handle = self._next()
        self.callbacks += 1
        handle.run()
        virtual_process = handle.virtual_process
        if virtual_process is not None and virtual_process.callbacks_left is not None:
            virtual_process.callbacks_left -= 1
            if virtual_process.callbacks_left <= 0:
                self.kill(virtual_process)

    def _next(self) -> "_Callback | _Timer":
        due, timers = self._due, self._timers
        while True:
            while timers and (not due or timers[0][0] <= self._now):
                when, _, timer = heapq.heappop(timers)
                if self._runs(timer):
                    self._now = max(self._now, when)
                    due.append(timer)
            if not due:
                raise DeadlockError("nothing is ready and no timer is set")
            handle = due.pop(self._pick() if len(due) > 1 else 0)
            if self._runs(handle):
                return handle

    def _pick(self) -> int:
        if self._chance.random() >= self._shuffle:
            return 0
        return self._chance.randrange(len(self._due))

    def _runs(self, handle: "_Callback | _Timer") -> bool:
        if handle.cancelled():
            return False
        if self._ending or handle.virtual_process is None or handle.virtual_process.alive:
            return True
        self._lost.append(handle)
        return False


class _Callback(asyncio.Handle):
    """A callback of one process. `run` is what the base class keeps to itself."""

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.virtual_process = context.get(_PROCESS)

    def run(self) -> None:
        self._run()


class _Timer(asyncio.TimerHandle):
    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        *,
        context: Context,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.virtual_process = context.get(_PROCESS)

    def run(self) -> None:
        self._run()


class _Future(asyncio.Future[Any]):
    """Hashed by number, not by address: sets of futures are walked in the same order each time."""

    def __init__(self, number: int, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = number

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task[T]):
    def __init__(self, number: int, work: Coroutine[Any, Any, T], **options: Any) -> None:
        # First: the base class already puts the task into a set.
        self._number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number
