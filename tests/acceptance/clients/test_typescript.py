"""The TypeScript client compiles under the strictest rules, reads anything, and drives a server.

The compiler is the one that the lock file of `clients/typescript` names.
"""

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from perdure.client import WireClient
from perdure.schema import codec
from tests.acceptance.clients.gated_answer import THOUGHTS, WORDS, GatedAnswers
from tests.contract.client.gate import Gate, gate
from tests.requirements import requirement
from tests.support import server_process
from tests.support.api import Api
from tests.support.node import installed, node, run
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text

ROOT: Final = Path(__file__).parents[3]
CLIENT: Final = ROOT / "clients" / "typescript"
HERE: Final = Path(__file__).parent / "typescript"
PATIENCE_SECONDS: Final = 45
MINE: Final = "ses_from_typescript"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled client.

    What `usage.mts` and the README say about its types holds then.
    """
    folder = tmp_path_factory.mktemp("typescript")
    asyncio.run(compile_into(folder))
    return folder / (CLIENT / "src").relative_to("/")


async def compile_into(folder: Path) -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))
    version = lock["packages"]["node_modules/typescript"]["version"]
    packages = await installed(f"typescript@{version}", "ci", prepare=copy_package)
    (folder / "readme.mts").write_text(readme_example(), encoding="utf-8")
    entry = {"perdure-client": [str(CLIENT / "src" / "index.ts")]}
    settings = {
        "extends": str(CLIENT / "tsconfig.json"),
        "compilerOptions": {"rootDir": "/", "outDir": str(folder), "paths": entry},
        "include": [str(CLIENT / "src"), str(HERE / "usage.mts"), "readme.mts"],
    }
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    compiler = packages / "node_modules" / "typescript" / "bin" / "tsc"
    code, output = await run(node(), str(compiler), "--project", str(folder))
    assert code == 0, output


def readme_example() -> str:
    text = (CLIENT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```typescript\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return block


def copy_package(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CLIENT / name, folder)


@requirement("S117", "S118", "S119", "S120", "S121", "S123")
async def test_it_reads_whatever_a_server_may_answer(compiled: Path) -> None:
    code, output = await run(node(), str(HERE / "read.mjs"), str(compiled))
    assert "not ok" not in output, output
    assert output.count("ok ") >= 18
    assert code == 0, output


@requirement("S20", "S114", "S122", "S129", "S134")
async def test_it_drives_a_server_and_survives_its_death(
    compiled: Path, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("Some", "thing."))
    async with asyncio.timeout(PATIENCE_SECONDS), gate() as (between, address):
        first = await server_process.start(folders, "first")
        between.upstream = first.api.port
        driver = await asyncio.create_subprocess_exec(
            *(node(), str(HERE / "drive.mjs"), str(compiled), address, str(folders.project)),
            env=folders.variables,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            lines = await heard(driver, "restart")
            await first.kill()
            second = await server_process.start(folders, "second")
            try:
                await two_more(second, between)
                lines += await heard(driver, None)
            finally:
                await second.stop()
        finally:
            await first.stop()
            if driver.returncode is None:
                driver.kill()
        code = await driver.wait()
    assert [line for line in lines if line.startswith("not ok")] == []
    assert sum(line.startswith("ok ") for line in lines) >= 9
    assert code == 0


async def two_more(server: server_process.ServerProcess, between: Gate) -> None:
    """Two more events, and only then the way is open again."""
    async with WireClient(f"http://127.0.0.1:{server.api.port}") as direct:
        await direct.sessions.switch_agent(MINE, "plan")
        await direct.sessions.switch_agent(MINE, "build")
    between.upstream = server.api.port


async def heard(driver: asyncio.subprocess.Process, last: str | None) -> list[str]:
    """The lines that it prints, up to `last` or to its end."""
    assert driver.stdout is not None
    lines: list[str] = []
    async for line in driver.stdout:
        lines.append(line.decode().rstrip("\n"))
        if lines[-1] == last:
            break
    return lines


async def test_it_joins_an_answer_in_the_middle_and_shows_all_of_it(
    api: Api, provider: ScriptedProvider, compiled: Path
) -> None:
    answer = GatedAnswers()
    provider.then(answer.gated(text(*WORDS, reasoning=THOUGHTS)))
    session = await api.create()
    await api.prompt(session, "tell me")
    drivers: list[asyncio.subprocess.Process] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        for number, gate in enumerate(answer.gates):
            if number % 4 == 2:
                drivers.append(await _begin(compiled, api, session))
            gate.set()
        for driver in drivers:
            output, _ = await driver.communicate()
            assert dict(codec.decode_any(output)) == {
                "reasoning reasoning-0": "".join(THOUGHTS),
                "text text-0": "".join(WORDS),
            }


async def _begin(compiled: Path, api: Api, session: str) -> asyncio.subprocess.Process:
    address = f"http://127.0.0.1:{api.port}"
    driver = await asyncio.create_subprocess_exec(
        *(node(), str(HERE / "join.mjs"), str(compiled), address, session),
        stdout=asyncio.subprocess.PIPE,
    )
    assert driver.stdout is not None
    assert await driver.stdout.readline() == b"joined\n"
    return driver
