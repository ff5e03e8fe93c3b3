"""The recorded day of published clients, replayed: statuses, shapes and the order of events."""

import re
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.net import sse
from perdure.protocol.v1.api import V1_API
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import Backend, open_backend
from tests.contract.server.v1 import v1_schema
from tests.contract.server.v1.recorded.requests import (
    TERMINAL_CLIENT,
    TURN,
    WEB_APP,
    RecordedRequest,
)
from tests.contract.server.v1.test_turn import following
from tests.support.raw_http import Answer, RawClient, call
from tests.support.scripted_provider import Call, calls, text

OPERATIONS = v1_schema.operations()


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncGenerator[Backend]:
    commands = {"hello": {"template": "Say hello to $ARGUMENTS", "description": "greets"}}
    async with open_backend(tmp_path, commands=commands) as opened:
        make_repository(opened.folders.project)
        yield opened


def make_repository(project: Path) -> None:
    (project / "hello.txt").write_text("hello\n")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, check=True)
    (project / ".git" / "opencode").write_text("recorded-project")


def operation_of(method: str, path: str) -> str:
    """The operation of the published contract that a path is for."""
    plain = path.partition("?")[0]
    fitting = [
        name
        for name in OPERATIONS
        if name.startswith(f"{method} ")
        and re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", name.partition(" ")[2]), plain)
    ]
    # A fixed path comes before one with a parameter at the same place.
    return min(fitting, key=lambda name: name.count("{"))


class Replay:
    def __init__(self, backend: Backend, port: int) -> None:
        self._backend = backend
        self._port = port
        self._words = {"DIRECTORY": backend.here, "PROJECT": "recorded-project"}
        self.faults: list[str] = []

    async def send(self, request: RecordedRequest) -> None:
        if request.answers:
            self._backend.provider.then(text(request.answers))
        path = self._fill(request.path)
        body = None if request.body is None else self._fill(codec.encode(request.body).decode())
        answer = await call(
            self._port, request.method, path, None if body is None else body.encode()
        )
        shown = f"{request.method} {request.path}"
        if answer.status != request.status:
            self.faults.append(f"{shown}: {answer.status} {answer.body[:300]!r}")
            return
        if answer.body:
            operation = operation_of(request.method, path)
            self.faults += [
                f"{shown}: {fault}" for fault in v1_schema.faults(operation, answer.json())
            ]
        self._keep(request, answer)

    def _keep(self, request: RecordedRequest, answer: Answer) -> None:
        if not request.keeps:
            return
        told: JsonObject = answer.json()
        info: JsonObject = told.get("info", told)
        self._words[request.keeps] = info["id"]
        if request.keeps == "ANSWER":
            self._words["PROMPT"] = info["parentID"]
        if request.keeps == "SHELL":
            self._words["SHELLNOTE"] = info["parentID"]

    def _fill(self, given: str) -> str:
        for word in sorted(self._words, key=len, reverse=True):
            given = given.replace(word, self._words[word])
        return given


@pytest.mark.parametrize("day", [TERMINAL_CLIENT, WEB_APP], ids=["terminal client", "web app"])
async def test_every_recorded_request_gets_the_recorded_status_and_shape(
    day: tuple[RecordedRequest, ...], backend: Backend, port: int
) -> None:
    replay = Replay(backend, port)
    for request in day:
        await replay.send(request)
    assert replay.faults == []


async def read_until(client: RawClient, last: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    reader = sse.Reader(bytes_max=10_000_000)
    while not any(each["type"] == last for each in found):
        for frame in reader.feed(await client.chunk()):
            told = codec.decode_any(frame.data)
            found.append(told.get("payload", told))
    return found


def kind_of(event: JsonObject) -> str:
    told: JsonObject = event["properties"]
    match event["type"]:
        case "message.updated":
            done = " done" if "completed" in told["info"]["time"] else ""
            return f"message.updated {told['info']['role']}{done}"
        case "message.part.updated":
            return f"part {told['part']['type']}"
        case "session.status":
            return f"status {told['status']['type']}"
        case other:
            return other


async def test_the_events_of_a_turn_come_in_the_recorded_order_and_fit_the_schema(
    backend: Backend, port: int
) -> None:
    made = (await call(port, "POST", "/session", b"{}")).json()
    backend.provider.then(text("I ", "see."))
    body = codec.encode({"parts": [{"type": "text", "text": "look"}]})
    async with following(port, "/event") as client:
        await call(port, "POST", f"/session/{made['id']}/prompt_async", body)
        events = await read_until(client, "session.diff")
    assert [fault for event in events for fault in v1_schema.event_faults(event)] == []
    kinds = [kind_of(each) for each in events if not each["type"].startswith("session.next.")]
    # Each recorded event comes, and none before the one that the recording has before it.
    place = 0
    for wanted in TURN:
        assert wanted in kinds[place:], (wanted, kinds[place:])
        place = kinds.index(wanted, place) + 1


async def test_events_of_tools_commands_and_compactions_fit_the_schema(
    backend: Backend, port: int
) -> None:
    made = (await call(port, "POST", "/session", b"{}")).json()
    path = f"/session/{made['id']}"
    write = Call("write", {"path": "new.txt", "content": "new\n"})
    backend.provider.then(calls(write, saying="So."), text("Done."))
    prompt = codec.encode({"parts": [{"type": "text", "text": "write it"}]})
    async with following(port, "/global/event") as client:
        await call(port, "POST", f"{path}/message", prompt)
        await call(port, "POST", f"{path}/shell", b'{"agent":"build","command":"cat new.txt"}')
        await call(port, "POST", f"{path}/summarize", b"{}")
        command = b'{"command":"hello","arguments":"bob"}'
        backend.provider.then(text("hello bob"))
        await call(port, "POST", f"{path}/command", command)
        events = await read_until(client, "command.executed")
    assert [fault for event in events for fault in v1_schema.event_faults(event)] == []
    kinds = {each["type"] for each in events}
    assert {"session.compacted", "session.error", "session.diff"} <= kinds
    diffs = [each["properties"]["diff"] for each in events if each["type"] == "session.diff"]
    assert diffs[-1][0]["patch"].endswith("+new\n")
    shells = [
        each["properties"]["part"]["state"]
        for each in events
        if each["type"] == "message.part.updated"
        and each["properties"]["part"].get("tool") == "bash"
    ]
    assert [state["status"] for state in shells] == ["running", "completed"]
    assert shells[-1]["output"] == "new\n"


def test_every_operation_of_the_published_contract_is_decided() -> None:
    ours = {f"{each.method} {generic(each.path)}" for each in V1_API}
    published = {f"{name.split()[0]} {generic(name.split()[1])}" for name in OPERATIONS}
    assert published - ours == set()
    assert ours - published == set()


def generic(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)
