"""Commands of the user: run, recorded, told to the model, and ended exactly once."""

import asyncio
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import OTHER, SESSION, Backend, open_backend
from tests.support.polling import until
from tests.support.raw_http import Answer, call
from tests.support.scripted_provider import Call, calls, text

SHELL = f"/api/session/{SESSION}/shell"


async def run(port: int, command: str, **more: object) -> Answer:
    return await call(port, "POST", SHELL, codec.encode({"command": command, **more}))


async def messages(port: int, session: str = SESSION) -> list[JsonObject]:
    answer = await call(port, "GET", f"/api/session/{session}/message?order=asc")
    return answer.json()["data"]


async def test_a_command_is_run_and_its_output_recorded(backend: Backend, port: int) -> None:
    answer = await run(port, "pwd; echo to-stderr >&2", id="msg_shell")
    assert answer.status == 200
    told = answer.json()["data"]
    assert (told["type"], told["id"]) == ("shell", "msg_shell")
    assert told["output"] == f"{backend.here}\nto-stderr\n"
    assert told["time"]["completed"] >= told["time"]["created"]
    assert await messages(port) == [told]
    history = await call(port, "GET", f"/api/session/{SESSION}/history")
    kinds = [each["type"] for each in history.json()["data"]]
    assert kinds == ["session.next.shell.started", "session.next.shell.ended"]


async def test_the_model_is_told_the_command_and_its_output(backend: Backend, port: int) -> None:
    await run(port, "echo forty-two")
    backend.provider.then(text("I see."))
    body = codec.encode({"prompt": {"text": "what did I run?"}})
    await call(port, "POST", f"/api/session/{SESSION}/prompt", body)
    await call(port, "POST", f"/api/session/{SESSION}/wait")
    sent = codec.encode(backend.provider.requests[0].body).decode()
    assert "The user ran this command:\\necho forty-two" in sent
    assert "forty-two\\n" in sent


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("exit 3", "Command exited with code 3."),
        ("echo out; kill -KILL $$", "out\nCommand exited with code 137."),
        ("printf half; false", "half\nCommand exited with code 1."),
        ("true", ""),
    ],
)
async def test_how_a_command_failed_is_part_of_its_output(
    command: str, ending: str, port: int
) -> None:
    assert (await run(port, command)).json()["data"]["output"] == ending


async def test_variables_with_secrets_are_not_told_to_the_model(tmp_path: Path) -> None:
    async with open_backend(tmp_path) as backend, backend.port() as port:
        backend.folders.variables["MY_API_KEY"] = "sk-secret"
        told = (await run(port, "env")).json()["data"]["output"]
    assert "HOME=" in told
    assert "sk-secret" not in told


async def test_a_command_of_a_person_needs_no_permission_and_no_sandbox(tmp_path: Path) -> None:
    denied = {"permissions": [{"action": "bash", "resource": "*", "effect": "deny"}]}
    outside = tmp_path / "outside.txt"
    async with open_backend(tmp_path, **denied) as backend, backend.port() as port:
        answer = await run(port, f"echo written > '{outside}'")
    assert answer.json()["data"]["output"] == ""
    assert outside.read_text() == "written\n"


async def test_a_long_output_is_cut_and_kept_whole_in_a_file(backend: Backend, port: int) -> None:
    told = (await run(port, "seq 1 200000")).json()["data"]["output"]
    assert len(told.encode()) < 200_000
    assert told.startswith("1\n2\n")
    assert told.endswith("200000\n")
    (kept,) = backend.folders.tool_output.iterdir()
    assert str(kept) in told
    assert kept.read_text().count("\n") == 200_000


async def test_a_retry_runs_nothing_again(backend: Backend, port: int) -> None:
    counted = backend.folders.project / "count.txt"
    answers = [await run(port, "echo once >> count.txt", id="msg_one") for _ in range(3)]
    assert [each.json() for each in answers] == [answers[0].json()] * 3
    assert counted.read_text() == "once\n"
    other = await run(port, "echo twice >> count.txt", id="msg_one")
    assert (other.status, other.json()["_tag"]) == (409, "ConflictError")
    elsewhere = codec.encode({"command": "true", "id": "msg_one"})
    answer = await call(port, "POST", f"/api/session/{OTHER}/shell", elsewhere)
    assert answer.status == 409
    assert counted.read_text() == "once\n"


async def test_a_running_session_takes_no_command(backend: Backend, port: int) -> None:
    backend.provider.then(calls(Call("bash", {"command": "touch begun; sleep 60"})), text("."))
    body = codec.encode({"prompt": {"text": "wait"}})
    await call(port, "POST", f"/api/session/{SESSION}/prompt", body)
    await until((backend.folders.project / "begun").exists)
    answer = await run(port, "touch never")
    assert (answer.status, answer.json()["resource"]) == (409, SESSION)
    await call(port, "POST", f"/api/session/{SESSION}/interrupt")
    assert not (backend.folders.project / "never").exists()


async def test_an_interrupt_ends_the_command_and_says_so(backend: Backend, port: int) -> None:
    running = asyncio.create_task(run(port, "echo begun; touch begun; sleep 60"))
    await until((backend.folders.project / "begun").exists)
    again = await run(port, "touch never")
    assert again.status == 409
    await call(port, "POST", f"/api/session/{SESSION}/interrupt")
    async with asyncio.timeout(10):
        answer = await running
    assert answer.json()["data"]["output"] == "begun\nThe command was interrupted."
    assert "completed" in answer.json()["data"]["time"]
    assert (await run(port, "echo more")).json()["data"]["output"] == "more\n"


async def test_a_prompt_that_arrives_meanwhile_is_answered_afterwards(
    backend: Backend, port: int
) -> None:
    backend.provider.then(text("Answered."))
    running = asyncio.create_task(run(port, "touch begun; until [ -e go ]; do sleep 0.01; done"))
    await until((backend.folders.project / "begun").exists)
    body = codec.encode({"prompt": {"text": "and now?"}})
    assert (await call(port, "POST", f"/api/session/{SESSION}/prompt", body)).status == 200
    (backend.folders.project / "go").touch()
    await running
    await call(port, "POST", f"/api/session/{SESSION}/wait")
    assert [each["type"] for each in await messages(port)] == ["shell", "user", "assistant"]


async def test_files_that_it_changes_are_part_of_the_diff(backend: Backend, port: int) -> None:
    await run(port, "echo new > made.txt")
    answer = await call(port, "GET", f"/api/session/{SESSION}/diff")
    assert [each["path"] for each in answer.json()["data"]] == ["made.txt"]


async def test_a_staged_revert_is_committed_first(backend: Backend, port: int) -> None:
    await run(port, "echo one", id="msg_1")
    await run(port, "echo two", id="msg_2")
    body = b'{"messageID":"msg_1"}'
    await call(port, "POST", f"/api/session/{SESSION}/revert/stage", body)
    await run(port, "echo three", id="msg_3")
    assert [each["id"] for each in await messages(port)] == ["msg_1", "msg_3"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"command":""}',
        b'{"command":"  \\n"}',
        b'{"command":"a\\u0000b"}',
        b'{"command":"\\ud800"}',
        b'{"command":7}',
        b'{"command":"true","id":"no"}',
        codec.encode({"command": "x" * (limits.BASH_COMMAND_BYTES_MAX + 1)}),
    ],
)
async def test_what_no_shell_takes_is_refused(body: bytes, backend: Backend) -> None:
    async with backend.port() as port:
        answer = await call(port, "POST", SHELL, body)
        assert (answer.status, answer.json()["_tag"]) == (400, "InvalidRequestError")
        assert await messages(port) == []
