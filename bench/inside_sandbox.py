"""Measures what the sandbox adds to a command: `python -m bench inside sandbox`."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.inside import measure
from perdure.core.sandbox.policy import SECRET_PATHS, Place, SandboxPolicy, make_policy
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import Launches
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.ports.sandbox import Wall

COMMAND = ("/bin/sh", "-c", "true")
ROUNDS = 100


@measure
async def sandbox() -> dict[str, object]:
    """Milliseconds that each wall adds to a command, from its start to its end (budget: 15)."""
    launches = Launches()
    processes = LocalProcesses(None, launches)
    measured: dict[str, object] = {}
    try:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            policy = plant(Path(folder))
            walls: tuple[Wall, ...] = ("namespaces", "landlock")
            programs: list[Sequence[str]] = [COMMAND]
            for wall in walls:
                wrapped = await LocalSandbox(processes, (wall,)).wrap(
                    COMMAND, policy=policy, directory=folder
                )
                programs.append(tuple(wrapped))
            plain, *others = await medians(processes, programs)
            measured["without_ms"] = round(plain, 2)
            for wall, taken in zip(walls, others, strict=True):
                measured[f"{wall}_adds_ms"] = round(taken - plain, 2)
    finally:
        await launches.aclose()
    return measured


async def medians(processes: LocalProcesses, programs: Sequence[Sequence[str]]) -> Sequence[float]:
    """Of each program. They take turns, so that what else the machine does counts for all."""
    taken: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for arguments, times in zip(programs, taken, strict=True):
            times.append(await time_once(processes, arguments))
    return [statistics.median(times) for times in taken]


async def time_once(processes: LocalProcesses, arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    result = await processes.run(
        arguments,
        directory="/",
        environment={"PATH": os.defpath},
        timeout_seconds=10,
        output_bytes_max=1_000,
    )
    taken = (time.perf_counter() - began) * 1e3
    if result.exit_code != 0:
        raise RuntimeError(result.output.decode(errors="replace"))
    return taken


def plant(root: Path) -> SandboxPolicy:
    """A project with a repository, and a home directory with all places that are hidden."""
    project, home = root / "project", root / "home"
    for name in ("hooks", "objects"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git" / "config").touch()
    for name in SECRET_PATHS:
        (home / name).mkdir(parents=True, exist_ok=True)
    return make_policy(
        (
            Place("write", str(project)),
            Place("keep", str(project / ".git")),
            Place("read", str(project / ".git" / "hooks")),
            Place("read", str(project / ".git" / "config")),
            *(Place("hide", str(home / name)) for name in SECRET_PATHS),
        )
    )
