"""Paths that change while the sandbox is made and while commands write: nothing gets out."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from perdure.core.sandbox.policy import Place, SandboxPolicy, make_policy
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import Launches
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.ports.sandbox import Wall
from tests.contract.host.sandbox import swapping_program
from tests.figures import Figure
from tests.skipping import cannot_run

SWAPS_MIN: Final = 10_000
COMMANDS_MIN: Final = 40
SECRET: Final = "canary-of-a-race"
WRITES: Final = (
    "echo x > {place}/file; echo x >> {place}/kept; mkdir {place}/made; ln -s x {place}/link;"
    " mv {place}/kept {place}/gone; touch {place}/hooks/pre-commit; rm {place}/kept; cat {secret}"
)


class Workspace:
    """A project with a directory and a link to a place outside, which change places."""

    def __init__(self, root: Path) -> None:
        self.inside, self.outside = root / "w", root / "out"
        self.real, self.link = self.inside / "a" / "git", self.inside / "link"
        (self.real / "hooks").mkdir(parents=True)
        (self.inside / "hidden").mkdir()
        (self.inside / "hidden" / "secret").write_text(SECRET)
        self.outside.mkdir()
        (self.outside / "kept").write_text("kept")
        self.link.symlink_to(self.outside)

    def policy(self) -> SandboxPolicy:
        return make_policy(
            (
                Place("write", str(self.inside)),
                Place("keep", str(self.real)),
                Place("reserve", str(self.real / "hooks")),
                Place("hide", str(self.inside / "hidden")),
            )
        )

    def touched(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.outside.rglob("*") if path.is_file()}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """On an ordinary file system: commands have a /dev/shm of their own."""
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Workspace(Path(made))


@asynccontextmanager
async def swapping(first: Path, second: Path, counts: list[int]) -> AsyncGenerator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, swapping_program.__file__, str(first), str(second)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield
    finally:
        output, _ = await process.communicate(b"")
        counts.append(int(output))


PLACES: Final = ("the place", "its directory", "a directory that is hidden")


@pytest.mark.parametrize("swapped", PLACES)
@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_swapped_directories_lead_nowhere(
    workspace: Workspace, wall: Wall, swapped: str, figure: Figure
) -> None:
    if wall == "landlock" and swapped == "a directory that is hidden":
        # Only a process outside can do that, and the secret is then found by its other name.
        return
    sandbox = LocalSandbox(LocalProcesses(), (wall,))
    (trial,) = await sandbox.trials()
    if trial.problem:
        cannot_run(f"This kernel does not offer {wall}: {trial.problem}")
    chosen = {
        "the place": workspace.real,
        "its directory": workspace.real.parent,
        "a directory that is hidden": workspace.inside / "hidden",
    }[swapped]
    launches = Launches()
    processes = LocalProcesses(None, launches)
    counts: list[int] = []
    ran = 0
    command = WRITES.format(place=workspace.real, secret=f"{workspace.inside}/hidden/*")
    wrapped = await sandbox.wrap(
        ("/bin/bash", "-c", command), policy=workspace.policy(), directory="/"
    )

    async def run_commands() -> None:
        nonlocal ran
        for _ in range(COMMANDS_MIN // 2):
            await processes.run(
                wrapped,
                directory="/",
                environment={"PATH": os.environ["PATH"]},
                timeout_seconds=30,
                output_bytes_max=100_000,
            )
            ran += 1

    try:
        async with swapping(chosen, workspace.link, counts), asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(run_commands())
    finally:
        await launches.aclose()
    assert workspace.touched() == {"kept": "kept"}
    assert ran >= COMMANDS_MIN
    assert counts[0] >= SWAPS_MIN
    figure("swaps of a directory and a link", counts[0])


@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_a_command_that_swaps_for_itself_gets_nowhere(
    workspace: Workspace, wall: Wall
) -> None:
    """Swapping, writing, hard links and renames of directories, all inside one sandbox."""
    sandbox = LocalSandbox(LocalProcesses(), (wall,))
    (trial,) = await sandbox.trials()
    if trial.problem:
        cannot_run(f"This kernel does not offer {wall}: {trial.problem}")
    at, out = workspace.inside, workspace.outside
    # With Landlock a directory around a hidden place cannot be written to.
    policy = workspace.policy() if wall == "namespaces" else make_policy((Place("write", str(at)),))
    (at / "d").mkdir()
    command = (
        f"(sleep 2) | {sys.executable} {swapping_program.__file__} {at}/d {at}/link > swaps &"
        f" while [ ! -s swaps ]; do echo x > {at}/d/file; echo x >> {at}/d/kept;"
        f" ln {out}/kept {at}/hard; echo x >> {at}/hard; rm -f {at}/hard; done; wait;"
        f" mv {at} {at}.moved; mv {at}/a {at}/b; mv {at}/hidden {at}/shown; cat {at}/shown/*"
    )
    result = await LocalProcesses().run(
        await sandbox.wrap(("/bin/bash", "-c", command), policy=policy, directory=str(at)),
        directory="/",
        environment={"PATH": os.environ["PATH"]},
        timeout_seconds=60,
        output_bytes_max=1_000_000,
    )
    assert workspace.touched() == {"kept": "kept"}
    assert int((at / "swaps").read_text()) > 1_000
    assert workspace.inside.exists()
    if wall == "namespaces":
        assert SECRET.encode() not in result.output
        assert workspace.real.exists()
        assert (at / "hidden" / "secret").read_text() == SECRET
