"""Slash commands by name: the prompt that each makes, and what it may not do."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend, open_backend
from tests.support.raw_http import Answer, call

COMMANDS = {
    "hello": {"template": "Say hello to $ARGUMENTS"},
    "log": {"template": 'First: !`echo "[$1][$ARGUMENTS]"; echo run >> runs`. Then: $1'},
    "brief": {"template": "Be brief", "agent": "brief", "model": "fake/fake-model"},
    "explore": {"template": "Find it", "agent": "explore"},
    "many": {"template": "!`true`" * 21},
}
PATH = f"/api/session/{SESSION}"


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncGenerator[Backend]:
    async with open_backend(tmp_path, commands=COMMANDS) as opened:
        yield opened


async def run(port: int, **body: object) -> Answer:
    return await call(port, "POST", f"{PATH}/command", codec.encode(body))


async def prompt_of(port: int, **body: object) -> JsonObject:
    answer = await run(port, **body)
    assert answer.status == 200, answer.body
    await call(port, "POST", f"{PATH}/wait")
    return answer.json()["data"]["prompt"]


async def test_a_command_becomes_a_prompt_and_is_answered(backend: Backend, port: int) -> None:
    prompt = await prompt_of(port, command="hello", arguments="bob")
    assert prompt["text"] == "Say hello to bob"
    assert len(backend.provider.requests) >= 1


async def test_what_the_template_runs_gets_arguments_and_no_more(
    backend: Backend, port: int
) -> None:
    hostile = "a;touch$IFS'hacked' two"
    prompt = await prompt_of(port, command="log", arguments=hostile, id="msg_log")
    first = "a;touch$IFS'hacked'"
    assert prompt["text"] == f"First: [{first}][{hostile}]. Then: {hostile}"
    assert not (backend.folders.project / "hacked").exists()
    again = await run(port, command="log", arguments=hostile, id="msg_log")
    assert again.json()["data"]["prompt"] == prompt
    assert (backend.folders.project / "runs").read_text() == "run\n"


async def test_agent_and_model_of_a_command_are_chosen(port: int) -> None:
    await prompt_of(port, command="brief", agent="terse")
    session = (await call(port, "GET", PATH)).json()["data"]
    assert session["agent"] == "brief"
    assert session["model"]["id"] == "fake-model"


async def test_a_command_for_a_subagent_mentions_it(port: int) -> None:
    prompt = await prompt_of(port, command="explore")
    assert prompt["agents"] == [{"name": "explore"}]
    assert (await call(port, "GET", PATH)).json()["data"].get("agent") != "explore"


async def test_init_asks_for_the_instructions_of_the_project(port: int) -> None:
    answer = await call(port, "POST", f"{PATH}/init", b"{}")
    assert answer.status == 200
    assert "AGENTS.md" in answer.json()["data"]["prompt"]["text"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"command": "none"}, 404),
        ({"command": "\0" * 500}, 404),
        ({"command": "many"}, 400),
        ({"command": "hello", "arguments": "a\0b"}, 400),
        ({"command": "hello", "arguments": "x" * 70_000}, 400),
        ({"command": "hello", "arguments": 7}, 400),
        ({"arguments": "x"}, 400),
    ],
)
async def test_what_cannot_be_run_is_refused(
    body: JsonObject, status: int, backend: Backend, port: int
) -> None:
    answer = await run(port, **body)
    assert answer.status == status
    assert backend.provider.requests == []
