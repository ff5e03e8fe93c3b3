"""Terminals as a user has them: started over HTTP, typed into over a WebSocket, gone at the end."""

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.location import LocationRef
from perdure.server.app import make_app
from perdure.server.settings import ServerSettings
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.raw_http import call, listening
from tests.support.server_process import server_process
from tests.support.websocket import RefusedUpgradeError, connected

PASSWORD = "open sesame"


async def start(api: Api, script: str, **asked: object) -> JsonObject:
    body = {"command": "/bin/sh", "args": ["-c", script], **asked}
    answer = await api.call("POST", "/api/pty", body)
    assert answer.status == 200, answer.body
    return answer.json["data"]


def connect(pty: JsonObject, query: str = "") -> str:
    return f"/api/pty/{pty['id']}/connect{query}"


async def test_a_terminal_is_used_from_start_to_end(api: Api, folders: ProjectFolders) -> None:
    pty = await start(api, 'stty -echo; echo ready; read -r line; echo "<$line>"; exit 3')
    assert (pty["status"], pty["cwd"]) == ("running", str(folders.project))
    async with connected(api.port, connect(pty)) as socket:
        await socket.until("ready\r\n")
        await socket.say("h\u00e9llo\n")
        await socket.until("<h\u00e9llo>\r\n")
        assert await socket.closed() == (1000, "")
    listed = (await api.call("GET", "/api/pty")).json["data"]
    assert [(item["status"], item["exitCode"]) for item in listed] == [("exited", 3)]
    async with connected(api.port, connect(pty)) as socket:
        assert await socket.closed() == (4404, "session exited")
    assert (await api.call("DELETE", f"/api/pty/{pty['id']}")).status == 204
    again = await api.call("DELETE", f"/api/pty/{pty['id']}")
    assert (again.status, again.tag) == (404, "PtyNotFoundError")


async def test_an_empty_body_starts_the_users_shell(api: Api) -> None:
    answer = await api.call("POST", "/api/pty")
    assert answer.status == 200
    assert answer.json["data"]["args"] == ["-l"]


async def test_two_clients_share_a_terminal_and_a_third_reads_on(api: Api) -> None:
    pty = await start(api, 'stty -echo; echo ready; while read -r line; do echo "<$line>"; done')
    async with connected(api.port, connect(pty)) as one, connected(api.port, connect(pty)) as two:
        assert await one.until("ready\r\n") == await two.until("ready\r\n") == "ready\r\n"
        await one.say("a\n")
        assert await one.until("<a>\r\n") == await two.until("<a>\r\n") == "<a>\r\n"
        async with connected(api.port, connect(pty, "?cursor=0")) as whole:
            assert await whole.until("<a>\r\n") == "ready\r\n<a>\r\n"
            cursor = await whole.cursor()
            assert cursor == len("ready\r\n<a>\r\n")
        await two.say("b\n")
        await one.until("<b>\r\n")
        async with connected(api.port, connect(pty, f"?cursor={cursor}")) as later:
            assert await later.until("<b>\r\n") == "<b>\r\n"
        async with connected(api.port, connect(pty, "?cursor=-1")) as tail:
            assert await tail.cursor() == cursor + len("<b>\r\n")


async def test_a_size_and_a_title_are_changed(api: Api) -> None:
    pty = await start(api, "stty -echo; read -r line; stty size; read -r line")
    body = {"title": "mine", "size": {"rows": 50, "cols": 132}}
    changed = await api.call("PUT", f"/api/pty/{pty['id']}", body)
    assert changed.json["data"] == {**pty, "title": "mine"}
    assert (await api.call("GET", f"/api/pty/{pty['id']}")).json["data"]["title"] == "mine"
    async with connected(api.port, connect(pty)) as socket:
        await socket.say("\n")
        await socket.until("50 132\r\n")


async def test_listeners_hear_of_a_terminals_life(api: Api) -> None:
    async with api.stream("/api/event") as events:
        await events.until("server.connected")
        pty = await start(api, "exit 4")
        seen = await events.until("pty.exited")
        await api.call("PUT", f"/api/pty/{pty['id']}", {"title": "x"})
        seen += await events.until("pty.updated")
        await api.call("DELETE", f"/api/pty/{pty['id']}")
        seen += await events.until("pty.deleted")
    told = [(event["type"], event["data"]) for event in seen if event["type"].startswith("pty.")]
    exited = {**pty, "status": "exited", "exitCode": 4, "title": "x"}
    assert told == [
        ("pty.created", {"info": pty}),
        ("pty.exited", {"id": pty["id"], "exitCode": 4}),
        ("pty.updated", {"info": exited}),
        ("pty.deleted", {"id": pty["id"]}),
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "", {"command": "/no/such/bin"}, 400),
        ("POST", "", {"cwd": "/nonexistent"}, 400),
        ("POST", "", {"args": "x"}, 400),
        ("POST", "", {"env": {"A": 1}}, 400),
        ("POST", "", {"title": "x" * 201}, 400),
        ("GET", "/pty_nope", None, 404),
        ("GET", "/zz", None, 400),
        ("PUT", "/pty_nope", {"title": "x"}, 404),
        ("PUT", "/pty_nope", {"size": {"rows": 0, "cols": 1}}, 400),
        ("PUT", "/pty_nope", {"size": {"rows": 1, "cols": 65_536}}, 400),
        ("POST", "/pty_nope/connect-token", None, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(
    api: Api, method: str, path: str, body: JsonObject | None, status: int
) -> None:
    answer = await api.call(method, f"/api/pty{path}", body)
    assert answer.status == status
    assert answer.tag in {"InvalidRequestError", "PtyNotFoundError"}


async def test_a_terminal_belongs_to_its_location(api: Api, folders: ProjectFolders) -> None:
    other = folders.project / "other"
    other.mkdir()
    pty = await start(api, "sleep 60")
    elsewhere = f"?location[directory]={other}"
    assert (await api.call("GET", f"/api/pty{elsewhere}")).json["data"] == []
    assert (await api.call("GET", f"/api/pty/{pty['id']}{elsewhere}")).status == 404
    with pytest.raises(RefusedUpgradeError) as refused:
        async with connected(api.port, connect(pty, elsewhere)):
            pass
    assert refused.value.status == 404


async def test_a_ticket_opens_one_terminal_once(folders: ProjectFolders) -> None:
    async with running(folders, password=PASSWORD) as instance:
        api = owner(instance)
        one, two = await start(api, "sleep 60"), await start(api, "sleep 60")
        ticket = await ticket_for(api, one)
        async with connected(api.port, connect(one, f"?ticket={ticket}")) as socket:
            await socket.cursor()
        for query in ("", "?ticket=", "?ticket=zzz", f"?ticket={ticket}"):
            assert await refusal(api, connect(one, query)) == (403 if query else 401)
        assert await refusal(api, connect(two, f"?ticket={await ticket_for(api, one)}")) == 403
        elsewhere = f"&location[directory]={folders.data}"
        assert (
            await refusal(api, connect(one, f"?ticket={await ticket_for(api, one)}{elsewhere}"))
            == 403
        )


async def test_a_slow_client_is_dropped_and_the_terminal_goes_on(api: Api) -> None:
    script = "stty -echo; read -r go; yes xxxxxxxxxxxxxxxxxxxxxxxx | head -c 30000000; echo; read x"
    pty = await start(api, script)
    async with (
        connected(api.port, connect(pty)) as slow,
        connected(api.port, connect(pty)) as quick,
    ):
        slow.transport.pause_reading()
        await quick.say("go\n")
        seen = 0
        async with asyncio.timeout(40):
            while seen < 30_000_000:
                seen += len((await quick.frame())[1])
        slow.transport.resume_reading()
        assert await slow.closed() == (1013, "fell too far behind")


async def test_shutdown_closes_sockets_and_ends_programs(folders: ProjectFolders) -> None:
    async with server_process(folders) as server:
        pty = await start(server.api, "trap '' HUP TERM; echo ready; while :; do sleep 1; done")
        async with connected(server.api.port, connect(pty)) as socket:
            await socket.until("ready")
            stopping = asyncio.create_task(server.stop())
            assert await socket.closed() == (1001, "server is shutting down")
            await stopping
    assert not Path(f"/proc/{pty['pid']}").exists()


@requirement("S19", "S94", "S95")
async def test_the_host_lays_its_variables_over_those_of_the_caller(
    folders: ProjectFolders,
) -> None:
    asked: list[tuple[LocationRef, str]] = []

    async def overlay(ref: LocationRef, directory: str) -> Mapping[str, str]:
        asked.append((ref, directory))
        return {"B": "host", "TERM": "dumb"}

    (folders.project / "sub").mkdir()
    runtime_settings = RuntimeSettings(
        environment=folders.environment,
        data_dir=str(folders.data),
        default_directory=str(folders.project),
    )
    async with open_runtime(runtime_settings) as runtime:
        app = make_app(
            runtime, ServerSettings(default_directory=str(folders.project), cursor_key=b"k" * 32)
        )
        environment = runtime.plugins.environment
        async with listening(app) as (_, port):
            script = 'stty -echo; read -r go; echo "$A $B $TERM"; read -r go'
            body = {
                "command": "/bin/sh",
                "args": ["-c", script],
                "cwd": "sub",
                "env": {"A": "caller", "B": "caller"},
            }
            with environment.register("host", overlay):
                answer = await call(port, "POST", "/api/pty", codec.encode(body))
            async with connected(port, connect(answer.json()["data"])) as socket:
                await socket.say("\n")
                await socket.until("caller host xterm-256color\r\n")
    assert asked == [(LocationRef(str(folders.project)), f"{folders.project}/sub")]


@requirement("S95")
async def test_a_plain_server_adds_nothing_of_its_own(api: Api) -> None:
    pty = await start(api, "stty -echo; read -r go; env; echo end; read -r go", env={"MINE": "1"})
    async with connected(api.port, connect(pty)) as socket:
        await socket.say("\n")
        text = await socket.until("end\r\n")
    names = {line.partition("=")[0] for line in text.split("\r\n") if "=" in line}
    given = {"PATH", "HOME", "TMPDIR", "PERDURE_DATA_DIR", "PERDURE_TRUSTED"}
    given.add("OPENCODE_DISABLE_MODELS_FETCH")
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == given | {
        "MINE",
        "TERM",
        "OPENCODE_TERMINAL",
        # By this one the terminal is found and ended if the server dies.
        "PERDURE_CHILD",
    }


def owner(instance: Instance) -> Api:
    token = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    return Api(instance.api.port, {"authorization": f"Basic {token}"})


async def ticket_for(api: Api, pty: JsonObject) -> str:
    answer = await api.call("POST", f"/api/pty/{pty['id']}/connect-token")
    assert answer.json["data"]["expires_in"] == 60
    return answer.json["data"]["ticket"]


async def refusal(api: Api, path: str) -> int:
    """The status with which a stranger is refused."""
    with pytest.raises(RefusedUpgradeError) as refused:
        async with connected(api.port, path):
            pass
    return refused.value.status
