"""Ports for programs: run to completion, connected by pipes, or detached from this process.

Adapters leave nothing running that they were told to end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.schema.value import Value


class ProcessResult(Value, kw_only=True):
    exit_code: int | None
    """None if it timed out."""
    output: bytes
    """stdout and stderr interleaved, cut at the requested limit."""
    truncated: bool
    timed_out: bool
    left_running: bool = False
    """Whether processes that it started were still running at its end and had to be ended."""


class OutputSink(Protocol):
    async def write(self, data: bytes) -> None:
        """Consume the next output. Waiting here slows the child down."""
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
        """Run in its own process group, without input; the group is gone when this returns.

        With `separate_errors` stderr is discarded. Cancelling ends the group: terminate, then kill.
        Raises FileNotFoundError or PermissionError if it cannot start.
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
        """As `run`, but stdout and stderr go to `sink` instead of the result.

        When this raises because it was cancelled, the sink has received all output.
        """
        ...


class PipedProcess(Protocol):
    """A long-running program with pipes for its input and output."""

    @property
    def over(self) -> bool: ...
    def send(self, data: bytes) -> bool:
        """Queue input without waiting; False if the program is over or too much is unread."""
        ...

    def close_input(self) -> None:
        """Close its input, which tells most programs to exit."""
        ...

    def kill(self) -> None:
        """Kill it and all processes that it started."""
        ...

    async def gone(self) -> None:
        """Wait until it has ended and the system has released all of its resources."""
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
        """Start a program in its own process group; its stderr is discarded.

        `heard` receives its output, `ended` is called once after the last output; neither waits.
        Raises OSError if it cannot start.
        """
        ...


class DetachedCommand(Value, kw_only=True):
    shell: str
    command: str
    directory: str
    environment: Mapping[str, str] | None
    """None means that of this process."""
    output: str
    """Path of its output file, which must not exist."""
    wrapper: tuple[str, ...] = ()
    """Words before those of the shell, such as a program that makes a sandbox."""


class HeldProcess(Protocol):
    """A process that waits for `release`; it exits without effect if this process dies."""

    @property
    def process(self) -> DetachedProcess: ...
    def release(self) -> None:
        """Let the command start."""
        ...

    async def abandon(self) -> None:
        """End it before the command starts, and remove its output file."""
        ...


class DetachedProcesses(Protocol):
    """Commands that outlive this process. Their exit codes stay readable after their end."""

    async def start(self, command: DetachedCommand) -> HeldProcess:
        """Prepare a command in its own process group, without input. Raises OSError."""
        ...

    def look(self, process: DetachedProcess) -> Sighting:
        """The state of a process; another process that reuses its pid is not mistaken for it."""
        ...

    def terminate(self, process: DetachedProcess) -> None:
        """Ask it and all processes that it started to exit; no-op if it is gone."""
        ...

    async def kill(self, process: DetachedProcess) -> None:
        """Kill it and its descendants, also those outside its group that write to its file."""
        ...

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        """Truncate its output file, and remove its other files."""
        ...
