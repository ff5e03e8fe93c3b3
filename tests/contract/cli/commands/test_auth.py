"""`perdure auth`: credentials are listed, stored and removed, and a key is never an argument."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.cli.command import PATIENCE_SECONDS, Installation, command, shown_until
from tests.support.authorization_server import authorization_server, browse

CANARY: Final = "sk-canary-ba5eba11"


@pytest.fixture
def home(installation: Installation) -> Installation:
    configure(installation)
    return installation


def configure(installation: Installation, **experimental: object) -> None:
    path = Path(installation.variables["HOME"]) / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    api = {
        "type": "aisdk",
        "package": "@ai-sdk/openai-compatible",
        "url": "https://gate.example/v1",
    }
    document: JsonObject = {
        "providers": {"gate": {"api": api, "models": {"one": {}}}},
        "experimental": experimental,
    }
    path.write_text(json.dumps(document), encoding="utf-8")


def stored(installation: Installation) -> list[dict[str, object]]:
    path = installation.data_dir / "credentials.json"
    return json.loads(path.read_bytes())["credentials"] if path.exists() else []


def test_a_key_from_standard_input_is_stored_listed_and_forgotten(home: Installation) -> None:
    said = home.perdure("auth", "login", "gate", "--label", "work", input=f"{CANARY}\n")
    assert (said.returncode, said.stdout, said.stderr) == (0, "gate is connected\n", "")
    (credential,) = stored(home)
    assert credential["key"] == CANARY
    assert credential["origins"] == ["https://gate.example"]
    listed = home.perdure("auth", "list")
    assert listed.stdout == "gate  work (stored)\n"
    as_json = home.perdure("auth", "list", "--format", "json")
    assert [each["id"] for each in json.loads(as_json.stdout)] == ["gate"]
    assert CANARY not in listed.stdout + as_json.stdout
    assert home.perdure("auth", "logout", "gate").returncode == 0
    assert stored(home) == []
    again = home.perdure("auth", "logout", "gate")
    assert (again.returncode, again.stderr) == (
        1,
        "perdure: no credential is stored for gate; `perdure auth list` shows those that are\n",
    )


def test_a_server_that_runs_is_asked_instead_of_the_files(home: Installation) -> None:
    with home.server() as url:
        said = home.perdure("auth", "--attach", url, "login", "gate", input=CANARY)
        assert said.returncode == 0, said.stderr
        assert home.perdure("auth", "--attach", url, "list").stdout == "gate  API key (stored)\n"


def test_a_key_is_not_sent_over_the_network_in_the_clear(home: Installation) -> None:
    url = "http://server.example:4096"
    said = home.perdure("auth", "--attach", url, "login", "gate", input=CANARY)
    assert said.returncode == 1
    assert "in the clear" in said.stderr


@pytest.mark.parametrize("key", ["", "a b", f"{CANARY}\n{CANARY}", "x" * 1024 * 1024, "\x00"])
def test_what_cannot_be_a_key_is_refused_and_not_repeated(home: Installation, key: str) -> None:
    said = home.perdure("auth", "login", "gate", input=key)
    assert said.returncode == 1
    assert "cannot be a key" in said.stderr
    assert CANARY not in said.stdout + said.stderr
    assert stored(home) == []


def test_an_unknown_provider_or_login_is_said_before_a_secret_is_asked_for(
    home: Installation,
) -> None:
    with home.started("auth", "login", "nope", stdin=subprocess.PIPE) as process:
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert "Integration not found: nope" in errors
    said = home.perdure("auth", "login", "gate", "--method", "nope")
    assert "has no login" in said.stderr
    assert home.perdure("auth", "login", "gate", CANARY).returncode == 2
    assert home.perdure("auth").returncode == 2


def test_a_file_that_cannot_be_used_is_named_with_its_remedy(home: Installation) -> None:
    home.perdure("auth", "login", "gate", input=CANARY)
    path = home.data_dir / "credentials.json"
    path.chmod(0o644)
    for arguments in (("list",), ("login", "gate"), ("logout", "gate")):
        said = home.perdure("auth", *arguments, input=CANARY)
        assert said.returncode == 1
        assert "can be read by other users" in said.stderr
        assert "Traceback" not in said.stderr


def test_a_key_that_is_typed_is_not_shown(home: Installation) -> None:
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        command("auth", "login", "gate"),
        cwd=home.project,
        env=home.variables,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        shown = shown_until(screen, "(not shown): ")
        os.write(screen, f"{CANARY}\n".encode())
        shown += shown_until(screen, "is connected")
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    assert CANARY not in shown
    assert stored(home)[0]["key"] == CANARY


async def test_a_login_is_finished_in_the_browser(home: Installation) -> None:
    async with authorization_server() as server:
        configure(home, logins={"gate": {"browser": server.method()}})
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "perdure.cli.main"),
            *("auth", "login", "gate", "--method", "browser"),
            cwd=home.project,
            env=home.variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.stderr.readline()
            url = (await process.stderr.readline()).decode().strip()
            _, back = server.grant(url)
            assert (await browse(back))[0] == 200
            output, errors = await process.communicate()
        assert (process.returncode, output) == (0, b"gate is connected\n")
        assert not any(secret.encode() in errors for secret in server.issued)
    assert stored(home)[0]["type"] == "oauth"
