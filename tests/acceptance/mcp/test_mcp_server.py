"""`perdure mcp-server` as a process: Sessions as durable workers of other agents."""

import asyncio
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitRequestParams, ElicitResult

from perdure.core import limits
from perdure.schema.codec import JsonObject, JsonValue
from tests.support.mcp.worker_client import worker_client
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

WRITES = Call("write", {"path": "made.txt", "content": "made\n"})
ASKS: JsonObject = {"permission": {"edit": "ask"}}


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_published_client_starts_waits_and_reads_the_result(
    mode: str, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folders.configure_user(**ASKS)
    forms: list[str] = []
    told: list[str | None] = []
    heard = asyncio.Event()

    async def elicit(context: object, params: ElicitRequestParams) -> ElicitResult:
        forms.append(params.message)
        return ElicitResult(action="accept", content={"reply": "once"})

    async def report(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)
        heard.set()

    # The answer ends once the client was told that the Session works.
    provider.then(calls(WRITES), text("I wrote it.", hold=heard))
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "perdure", "mcp-server"],
        env=folders.variables,
        cwd=folders.project,
    )
    async with Client(program, mode=mode, elicitation_callback=elicit) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [
            *("session_start", "session_send", "session_wait"),
            *("session_list", "session_result", "session_reply"),
        ]
        started = await client.call_tool("session_start", {"prompt": "write it", "key": "one"})
        assert started.structured_content is not None
        session = started.structured_content["session"]
        waited = await client.call_tool(
            "session_wait", {"session": session, "seconds": 20}, progress_callback=report
        )
        assert waited.structured_content is not None
        assert waited.structured_content["result"] == "I wrote it."
        assert waited.structured_content["delivered"] == "now"
    assert (folders.project / "made.txt").read_text() == "made\n"
    assert len(forms) == 1
    assert "edit" in forms[0]
    assert "works" in told


async def test_a_client_that_is_killed_comes_back_and_gets_the_result_once(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    held = asyncio.Event()
    provider.then(text("half", hold=held))
    start: JsonObject = {"prompt": "work", "key": "the job"}
    async with asyncio.timeout(60):
        async with worker_client(folders) as client:
            session = (await client.call("session_start", **start))["session"]
            await client.begin_call("session_wait", session=session, seconds=60)
            await provider.arrived(1)
            # Both sides are gone in the middle of the answer.
            await client.kill()
        held.set()
        provider.then(text("All done."))
        async with worker_client(folders) as client:
            again = await client.call("session_start", **start)
            assert (again["session"], again["created"]) == (session, False)
            done = await client.call("session_wait", session=session, seconds=60)
            if done["state"] == "failed":
                # The request may have been paid for, so it is not sent again by itself.
                await client.call("session_send", session=session, prompt="go on", key="on")
                done = await client.call("session_wait", session=session, seconds=60)
            assert (done["result"], done["delivered"]) == ("All done.", "now")
        async with worker_client(folders) as client:
            repeated = await client.call("session_result", session=session)
            assert (repeated["result"], repeated["delivered"]) == ("All done.", "before")
            assert len((await client.call("session_list"))["sessions"]) == 1


async def test_without_forms_a_request_is_listed_with_how_to_answer_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folders.configure_user(**ASKS)
    provider.then(calls(WRITES), text("I wrote it."))
    async with worker_client(folders) as client:
        session = (await client.call("session_start", prompt="write it"))["session"]
        waits = await client.call("session_wait", session=session, seconds=20)
        assert waits["state"] == "waiting"
        (request,) = waits["waits_for"]
        assert (request["kind"], request["action"]) == ("permission", "edit")
        assert "session_reply" in request["answer_with"]
        assert "result" not in waits
        name = request["request"]
        assert "Give `reply`" in await client.fail("session_reply", session=session, request=name)
        await client.call("session_reply", session=session, request=name, reply="once")
        done = await client.call("session_wait", session=session, seconds=20)
        assert done["result"] == "I wrote it."


async def test_in_the_newer_era_the_result_asks_and_the_client_calls_again(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folders.configure_user(**ASKS)
    provider.then(calls(WRITES), text("I wrote it."))
    async with worker_client(folders, modern=True, elicits=True) as client:
        found = await client.request("server/discover", {})
        assert found["supportedVersions"] == ["2026-07-28"]
        session = (await client.call("session_start", prompt="write it"))["session"]
        arguments: JsonObject = {"session": session, "seconds": 20}
        call: JsonObject = {"name": "session_wait", "arguments": arguments}
        asks = await client.request("tools/call", call)
        assert asks["resultType"] == "input_required"
        ((name, form),) = asks["inputRequests"].items()
        assert form["method"] == "elicitation/create"
        # Whoever declines leaves the request to others.
        declined: JsonObject = {**call, "inputResponses": {name: {"action": "decline"}}}
        left = (await client.request("tools/call", declined))["structuredContent"]
        assert (left["state"], left["waits_for"][0]["request"]) == ("waiting", name)
        reply: JsonObject = {"action": "accept", "content": {"reply": "once"}}
        done = await client.request("tools/call", {**call, "inputResponses": {name: reply}})
        assert done["structuredContent"]["result"] == "I wrote it."


async def test_cancelling_a_wait_answers_nothing_and_ends_no_work(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    held = asyncio.Event()
    provider.then(text("done", hold=held))
    async with worker_client(folders) as client:
        session = (await client.call("session_start", prompt="work"))["session"]
        waiting = await client.begin_call("session_wait", session=session, seconds=60)
        await provider.arrived(1)
        await client.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": waiting},
            }
        )
        assert (await client.call("session_wait", session=session, seconds=0))["state"] == "running"
        held.set()
        assert (await client.call("session_wait", session=session, seconds=20))["result"] == "done"
        assert not any(message.get("id") == waiting for message in client.heard)


async def test_keys_steering_long_results_and_failures(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    long = "x" * (limits.MCP_SERVER_ANSWER_CHARS + 5)
    async with worker_client(folders) as client:
        provider.then(text(long))
        session = (await client.call("session_start", prompt="one", key="k"))["session"]
        first = await client.call("session_wait", session=session, seconds=20)
        assert len(first["result"]) == limits.MCP_SERVER_ANSWER_CHARS
        rest = await client.call("session_result", session=session, offset=len(first["result"]))
        assert (rest["result"], rest["result_id"]) == ("xxxxx", first["result_id"])
        told = await client.fail("session_start", prompt="two", key="k")
        assert told == "This key was used before, for another prompt."
        provider.then(text("second"))
        sent = [
            (await client.call("session_send", session=session, prompt="more", key="m"))["message"]
            for _ in range(3)
        ]
        assert len(set(sent)) == 1
        done = await client.call("session_wait", session=session, seconds=20)
        assert (done["result"], done["delivered"]) == ("second", "now")
        assert len(provider.requests) == 2
        assert "no session ses_x" in await client.fail("session_wait", session="ses_x")
        assert "provider/model" in await client.fail("session_start", prompt="a", model="b")


UNKNOWN_VERSION = (
    b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":'
    b'{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}'
)
HOSTILE: list[tuple[bytes, int]] = [
    (b"{", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 100_000, -32700),
    (b"[]", -32600),
    (b"3", -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":4}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', -32602),
    (UNKNOWN_VERSION, -32022),
    (b'{"pad":"' + b"x" * limits.MCP_MESSAGE_BYTES_MAX + b'"}', -32700),
]
WRONG: list[dict[str, JsonValue]] = [
    {},
    {"prompt": ""},
    {"prompt": 3},
    {"prompt": "a", "key": ""},
    {"prompt": "a", "key": "k" * 1_000},
    {"prompt": "a", "directory": "relative"},
    {"prompt": "a", "directory": "/does/not/exist"},
    {"prompt": "a", "other": True},
]


async def test_what_is_no_request_is_refused_and_the_next_one_works(
    folders: ProjectFolders,
) -> None:
    async with worker_client(folders) as client:
        for line, code in HOSTILE:
            await client.send(line)
            assert (await client.receive())["error"]["code"] == code, line[:100]
        await client.send(b'{"jsonrpc":"2.0","id":"perdure-1","result":{}}\n\n')
        for arguments in WRONG:
            assert await client.fail("session_start", **arguments)
        for version, agreed in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
            assert (await client.shake_hands(version))["protocolVersion"] == agreed
        assert (await client.call("session_list"))["sessions"] == []


async def test_attached_to_a_server_the_work_goes_on_while_both_sides_are_gone(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    held = asyncio.Event()
    provider.then(text("went on", hold=held))
    async with server_process(folders) as server:
        url = f"http://127.0.0.1:{server.api.port}"
        async with worker_client(folders, "--attach", url) as client:
            directory = str(folders.project)
            started = await client.call("session_start", prompt="work", directory=directory)
            await provider.arrived(1)
        held.set()
        async with worker_client(folders, "--attach", url) as client:
            done = await client.call("session_wait", session=started["session"], seconds=20)
            assert (done["result"], done["delivered"]) == ("went on", "now")
