"""What a fresh interpreter loads: the client without the engine, the version without the rest."""

import json
import os
import subprocess
import sys
from typing import Final

from tests.requirements import requirement
from tests.tidy.source_tree import PACKAGE, ROOT

ENGINE: Final = ("core", "llm", "ports", "store", "tools", "host", "location", "runtime", "server")
HEAVY: Final = ("apsw", "httptools", "httpx2", "asyncio", "sqlite3", "ssl")


def loaded_by(statement: str) -> set[str]:
    """The names in `sys.modules` after `statement` ran in an interpreter of its own."""
    program = f"{statement}\nimport json, sys\nsys.stderr.write(json.dumps(list(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(json.loads(ran.stderr))


def test_importing_the_package_loads_only_its_version() -> None:
    assert {name for name in loaded_by("import perdure") if name.startswith("perdure.")} == set()


@requirement("S144")
def test_the_vocabulary_loads_nothing_of_the_engine() -> None:
    loaded = loaded_by("import perdure.schema.manifest")
    ours = {name.split(".")[1] for name in loaded if name.startswith("perdure.")}
    assert ours == {"schema", "lazy_pattern"}


if (PACKAGE / "client" / "__init__.py").exists():

    @requirement("S125", "S146")
    def test_the_client_loads_nothing_of_the_engine() -> None:
        loaded = loaded_by("import perdure.client")
        engine = {f"perdure.{name}" for name in ENGINE}
        assert loaded & {*engine, "apsw", "sqlite3", "httptools"} == set()


if (PACKAGE / "cli" / "main.py").exists():

    def test_asking_for_the_version_loads_nothing_heavy() -> None:
        loaded = loaded_by(
            "from perdure.cli.main import main\n"
            "try:\n    main(['--version'])\nexcept SystemExit:\n    pass"
        )
        assert loaded & set(HEAVY) == set()


def test_a_turn_without_mcp_servers_loads_nothing_of_their_package() -> None:
    loaded = loaded_by(
        "import asyncio\n"
        "from perdure.testing import ScriptedModel, open_host, text\n"
        "async def main():\n"
        "    model = ScriptedModel()\n"
        "    model.turn(text('hello'))\n"
        "    async with open_host(model=model) as host:\n"
        "        session = await host.sessions.create()\n"
        "        await host.sessions.prompt(session.id, text='hello')\n"
        "        await host.sessions.wait(session.id)\n"
        "asyncio.run(main())"
    )
    assert "perdure.location.mcp.servers" in loaded
    assert loaded & {"mcp", "mcp_types", "pydantic", "anyio"} == set()
