"""Real processes that a test has a hand in."""

from collections.abc import Mapping, Sequence

from perdure.host.process.runner import LocalProcesses
from perdure.ports import ProcessResult


class WatchedProcesses:
    """Implements ports.ProcessRunner. What a test has in mind is a `starting` of its own."""

    def __init__(self) -> None:
        self._real = LocalProcesses()

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
        return await self._real.run(
            arguments,
            directory=directory,
            environment=environment,
            timeout_seconds=await self.starting(arguments, timeout_seconds),
            output_bytes_max=output_bytes_max,
            separate_errors=separate_errors,
        )

    async def starting(self, arguments: Sequence[str], seconds: float) -> float:
        """Before each one; how many seconds it is given instead of `seconds`."""
        return seconds
