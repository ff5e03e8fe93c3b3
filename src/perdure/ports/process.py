"""Programs: some are waited for, some stay and are talked with, and some outlive this process.

No adapter leaves anything running of what it was told to end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.schema.value import Value


class ProcessResult(Value, kw_only=True):
    exit_code: int | None
    """None when it was ended because its time was up."""
    output: bytes
    """stdout and stderr as they came, cut at the asked bound."""
    truncated: bool
    timed_out: bool
    left_running: bool = False
    """Whether something that it started was still there at its end, and had to be ended too."""


class OutputSink(Protocol):
    async def write(self, data: bytes) -> None:
        """Take what was printed next. The child is slowed down to what this can take."""
        ...


class ProcessRunner(Protocol):
    async def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
        output_bytes_max: int,
        separate_errors: bool = False,
    ) -> ProcessResult:
        """Run in a process group of its own, with no input; the group is gone when this returns.

        With `separate_errors` stderr is discarded. Cancelling ends the group: terminate, then kill.
        Raises FileNotFoundError or PermissionError when it cannot start.
        """
        ...


class SpoolingRunner(ProcessRunner, Protocol):
    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        """As `run`, with stdout and stderr going to `sink` as they come and not into the result.

        When this raises because it was cancelled, the sink has had all that was printed.
        """
        ...


class PipedProcess(Protocol):
    """A program that stays, and is talked with through its input and output."""

    @property
    def over(self) -> bool: ...
    def send(self, data: bytes) -> bool:
        """Never waits; whether it was taken. It is not, once it is over or too much is unread."""
        ...

    def kill(self) -> None:
        """End it and all that it started, now."""
        ...

    async def gone(self) -> None:
        """Wait until it has ended and nothing of it is left to the system."""
        ...


class PipedProcesses(Protocol):
    async def start(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> PipedProcess:
        """In a process group of its own; what it says on stderr is dropped.

        `heard` takes what it prints, `ended` is called once when it says no more; neither waits.
        Raises OSError when it cannot start.
        """
        ...


class DetachedCommand(Value, kw_only=True):
    shell: str
    command: str
    directory: str
    environment: Mapping[str, str] | None
    """None is that of this process."""
    output: str
    """Where it prints to; the file must not be there."""


class HeldProcess(Protocol):
    """A process that waits for our word, and is gone without having done anything if we die."""

    @property
    def process(self) -> DetachedProcess: ...
    def release(self) -> None:
        """Let it begin."""
        ...

    async def abandon(self) -> None:
        """End it before it has begun, with its output file."""
        ...


class DetachedProcesses(Protocol):
    """Commands that outlive this process. How one ended can still be seen long after it did."""

    async def start(self, command: DetachedCommand) -> HeldProcess:
        """In a process group of its own, with no input. Raises OSError when it cannot start."""
        ...

    def look(self, process: DetachedProcess) -> Sighting:
        """Another process with the number of one that is gone is not taken for it."""
        ...

    def terminate(self, process: DetachedProcess) -> None:
        """Ask it and all that it started to end; nothing when it is gone."""
        ...

    async def kill(self, process: DetachedProcess) -> None:
        """End it and all that it started, also what left its group and still prints to its file."""
        ...

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        """Cut its output file, and remove whatever else it left beside it."""
        ...
