"""The sandbox of this machine, behind the Sandbox port.

Whether namespaces or Landlock work cannot be read from the system: a container, a security module
or a setting may refuse them. So each is tried once with a harmless program, in this order, when
the first command is started.
"""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from perdure.core.sandbox import bubblewrap, seatbelt, syscall_filter
from perdure.core.sandbox.policy import Access, SandboxPolicy, make_policy
from perdure.host.sandbox.launches import LAUNCHER
from perdure.host.sandbox.network_proxy import NetworkProxy
from perdure.ports import ProcessRunner
from perdure.ports.sandbox import FILTERING_WALLS, HostAccess, Wall
from perdure.schema.value import Value

_WALLS: Final[dict[str, tuple[Wall, ...]]] = {
    "linux": ("namespaces", "bubblewrap", "landlock"),
    "darwin": ("seatbelt",),
}
_BUBBLEWRAP: Final = "bwrap"
_SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
_PROBE_SECONDS: Final = 10.0
_PROBE_BYTES: Final = 1_000
_LETTERS: Final[dict[Access, str]] = {
    "write": "w",
    "read": "r",
    "hide": "h",
    "keep": "k",
    "reserve": "d",
}


class Trial(Value):
    """The result of trying one wall."""

    wall: Wall
    problem: str
    """Empty if it works."""


class LocalSandbox:
    """Adapter of ports.Sandbox. One for the process."""

    def __init__(
        self,
        processes: ProcessRunner,
        walls: Sequence[Wall] | None = None,
        *,
        proxy: NetworkProxy | None = None,
    ) -> None:
        self._processes = processes
        self._proxy = proxy
        self._walls = _WALLS.get(sys.platform, ()) if walls is None else walls
        self._trials: tuple[Trial, ...] | None = None
        self._trying = asyncio.Lock()

    async def wall(self) -> Wall | None:
        return next((trial.wall for trial in await self.trials() if not trial.problem), None)

    async def trials(self) -> tuple[Trial, ...]:
        """What was tried: failures, and the first that works."""
        async with self._trying:
            if self._trials is None:
                self._trials = await self._try_all()
        return self._trials

    async def wrap(
        self,
        arguments: Sequence[str],
        *,
        policy: SandboxPolicy,
        directory: str,
        hosts: HostAccess | None = None,
    ) -> tuple[str, ...]:
        wall = await self.wall()
        if wall is None:
            return tuple(arguments)
        network = "network" if policy.network else "offline"
        filters = wall in FILTERING_WALLS and not policy.network
        if hosts is not None and self._proxy is not None and filters:
            network = f"proxy:{self._proxy.admit(hosts)}"
        return (*_prefix(wall, policy, directory, network), *arguments)

    async def _try_all(self) -> tuple[Trial, ...]:
        trials: list[Trial] = []
        for wall in self._walls:
            problem = await self._try(wall)
            trials.append(Trial(wall, problem))
            if not problem:
                break
        return tuple(trials)

    async def _try(self, wall: Wall) -> str:
        if not sys.executable:
            return "this program is part of another one, and Python cannot be started"
        if wall not in _WALLS.get(sys.platform, ()):
            return f"not available on {sys.platform}"
        try:
            result = await self._processes.run(
                (*_prefix(wall, make_policy(()), "/", "offline"), "true"),
                directory="/",
                environment={"PATH": os.defpath},
                timeout_seconds=_PROBE_SECONDS,
                output_bytes_max=_PROBE_BYTES,
            )
        except FileNotFoundError as error:
            return f"{error.filename} is not installed"
        except OSError as error:
            return str(error)
        if result.exit_code == 0:
            return ""
        lines = result.output.decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line), "it failed without a message")


def _prefix(wall: Wall, policy: SandboxPolicy, directory: str, network: str) -> tuple[str, ...]:
    """The words before those of a program. `network` is that of the launcher's arguments."""
    match wall:
        case "namespaces" | "landlock":
            letters = (f"{_LETTERS[place.access]}{place.path}" for place in policy.places)
            return (*_launch(wall, network, directory), *letters, "--")
        case "bubblewrap":
            outer = bubblewrap.make_arguments(
                policy, directory=directory, is_directory=os.path.isdir
            )
            program = shutil.which(_BUBBLEWRAP) or _BUBBLEWRAP
            return (program, *outer, *_launch("filter", network, directory), "--")
        case "seatbelt":
            return (_SANDBOX_EXEC, "-p", seatbelt.make_profile(policy))


def _launch(wall: str, network: str, directory: str) -> tuple[str, ...]:
    reachable = wall != "landlock" or network == "network"
    families = syscall_filter.INTERNET if reachable else syscall_filter.NETLINK
    sees_others = wall == "landlock"
    program = (
        syscall_filter.make_filter(platform.machine(), families, sees_others=sees_others) or b""
    )
    return (*LAUNCHER, wall, network, program.hex(), directory)
