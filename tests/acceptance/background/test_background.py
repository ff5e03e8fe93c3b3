"""Commands in the background: started, inspected, ended and told of, also over crashes."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.process import table
from perdure.host.process.detached import LocalDetached
from perdure.schema.codec import JsonObject, JsonValue
from perdure.store.tables import job_table
from tests.fixtures import opened
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.polling import until
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, Request, ScriptedProvider, calls, text
from tests.support.server_process import server_process


@pytest.fixture(autouse=True)
async def nothing_left(folders: ProjectFolders) -> AsyncGenerator[None]:
    """Whatever a test leaves running is ended after it."""
    yield
    if not folders.database.exists():
        return
    async with opened(folders.database) as database:
        left = await database.read(job_table.list_running)
    for job in left:
        await LocalDetached().kill(job.process)


def background(command: str, **more: JsonValue) -> Call:
    return Call("bash", {"command": command, "background": True, **more})


async def started(api: Api, provider: ScriptedProvider, command: str, **more: JsonValue) -> str:
    """A new Session with a job; the Session."""
    provider.then(calls(background(command, **more)), text("it runs"))
    session = await api.create()
    await api.ask(session, "start it")
    return session


async def jobs(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/job"))["data"]


async def looked_at(api: Api, session: str, job: JsonObject) -> JsonObject:
    return (await api.get(f"/api/session/{session}/job/{job['id']}"))["data"]


async def told(api: Api, session: str) -> list[str]:
    return [m["text"] for m in await api.messages(session) if m["type"] == "synthetic"]


async def is_told(api: Api, session: str) -> str:
    """The first notice, when there is one and it has been answered."""
    async with api.events(session) as stream:
        *_, event = await stream.until("synthetic")
    await api.wait(session)
    return event["data"]["text"]


def last_tool(request: Request) -> str:
    return request.texts("tool")[-1]


def number_in(path: Path) -> int:
    """What a command wrote there; nothing while it has not."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


@requirement("S191")
async def test_a_command_runs_on_and_its_end_is_told(api: Api, provider: ScriptedProvider) -> None:
    session = await started(
        api, provider, "echo up; while [ ! -e stop ]; do sleep 0.02; done; echo down; exit 4"
    )
    assert "You will be told when it ends" in last_tool(provider.requests[1])
    (job,) = await jobs(api, session)
    assert job["id"] in last_tool(provider.requests[1])
    assert (job["state"], "exitCode" in job) == ("running", False)
    assert job["path"] in last_tool(provider.requests[1])
    await until(lambda: Path(job["path"]).read_text() == "up\n")
    Path(job["directory"], "stop").touch()
    notice = await is_told(api, session)
    assert f"Background job {job['id']} has exited with code 4." in notice
    ending = f"Its output ended with:\nup\ndown\nAll of its output is in {job['path']}"
    assert notice.endswith(ending)
    assert provider.requests[2].texts("user")[-1] == notice
    (job,) = await jobs(api, session)
    assert (job["state"], job["exitCode"]) == ("exited", 4)
    assert job["time"]["started"] <= job["time"]["ended"] < job["time"]["deadline"]
    shown = await looked_at(api, session, job)
    assert (shown["output"], shown["bytes"], shown["truncated"]) == ("up\ndown\n", 8, False)
    assert await told(api, session) == [notice]
    assert sorted(path.name for path in Path(job["path"]).parent.iterdir()) == [
        Path(job["path"]).name
    ]


async def test_the_model_sees_what_is_new_and_can_wait_for_the_end(
    api: Api, provider: ScriptedProvider
) -> None:
    command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"
    session = await started(api, provider, command)
    (job,) = await jobs(api, session)
    await until(lambda: Path(job["path"]).read_text())
    provider.then(calls(Call("bash_output", {"job": job["id"]})), text("one it is"))
    await api.ask(session, "look")
    assert last_tool(provider.requests[-1]) == f"one\n\nBackground job {job['id']} is running."
    Path(job["directory"], "go").touch()
    provider.then(calls(Call("bash_output", {"job": job["id"], "wait": 10})), text("two it is"))
    await api.ask(session, "look again")
    shown = next(r for r in provider.requests if "two" in "".join(r.texts("tool")))
    assert last_tool(shown) == f"two\n\nBackground job {job['id']} has exited with code 0."
    await api.wait(session)
    assert len(await told(api, session)) == 1
    provider.then(calls(Call("bash_output", {"job": job["id"]})), text("nothing"))
    await api.ask(session, "and now")
    assert last_tool(provider.requests[-1]).startswith("(no new output)")


@pytest.mark.usefixtures("without_sandbox")
async def test_what_the_model_cancels_is_over_and_is_not_told_again(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await started(api, provider, "sleep 60 & echo $! >child; wait")
    (job,) = await jobs(api, session)
    child = await until(lambda: number_in(folders.project / "child"))
    assert table.read_identity(child)
    provider.then(calls(Call("bash_cancel", {"job": job["id"]})), text("gone"))
    await api.ask(session, "end it")
    assert last_tool(provider.requests[-1]) == f"Background job {job['id']} was cancelled."
    assert not table.read_identity(child)
    assert await told(api, session) == []
    (job,) = await jobs(api, session)
    assert job["state"] == "cancelled"
    provider.then(calls(Call("bash_cancel", {"job": job["id"]})), text("still gone"))
    await api.ask(session, "again")
    assert last_tool(provider.requests[-1]) == f"Background job {job['id']} was cancelled."


async def test_what_a_person_cancels_the_model_is_told(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await started(api, provider, "trap '' TERM; echo deaf; while :; do sleep 1; done")
    (job,) = await jobs(api, session)
    await until(lambda: Path(job["path"]).read_text())
    ended = await api.post(f"/api/session/{session}/job/{job['id']}/cancel")
    assert ended["data"]["state"] == "cancelled"
    assert f"Background job {job['id']} was cancelled." in await is_told(api, session)
    assert len(provider.requests) == 3


async def test_a_job_has_a_deadline(api: Api, provider: ScriptedProvider) -> None:
    session = await started(api, provider, "echo begun; sleep 60", timeout=300)
    assert "ran out of time and was ended." in await is_told(api, session)
    (job,) = await jobs(api, session)
    assert job["state"] == "timed_out"


async def test_a_job_that_floods_its_file_is_ended_and_the_file_is_cut(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await started(api, provider, "head -c 1073741824 /dev/zero")
    notice = await is_told(api, session)
    assert f"printed more than {limits.JOB_OUTPUT_BYTES_MAX} bytes" in notice
    (job,) = await jobs(api, session)
    assert job["state"] == "overflowed"
    assert Path(job["path"]).stat().st_size == limits.JOB_OUTPUT_BYTES_MAX
    assert len(notice) < 4 * limits.JOB_LAST_WORDS_BYTES_MAX
    provider.then(calls(Call("bash_output", {"job": job["id"]})), text("a lot"))
    await api.ask(session, "look")
    shown = last_tool(provider.requests[-1])
    assert f"bytes before this are in {job['path']}]" in shown
    assert len(shown) < 2 * limits.JOB_OUTPUT_SHOWN_BYTES_MAX


async def test_a_hundred_jobs_at_once_are_refused_beyond_the_limit(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(*(background(f"sleep {60 + n}") for n in range(100))), text("some run"))
    session = await api.create()
    messages = await api.ask(session, "start a hundred")
    parts = [part for message in messages for part in message.get("content", ())]
    states = [part["state"] for part in parts if part["type"] == "tool"]
    refused = [state["error"]["message"] for state in states if state["status"] == "error"]
    running = [job for job in await jobs(api, session) if job["state"] == "running"]
    assert len(running) == limits.JOBS_PER_SESSION_MAX
    assert len(refused) == 100 - limits.JOBS_PER_SESSION_MAX
    assert all("which is the limit" in reason for reason in refused)
    assert (await api.call("DELETE", f"/api/session/{session}")).status == 204


async def test_a_job_belongs_to_its_session(api: Api, provider: ScriptedProvider) -> None:
    session = await started(api, provider, "sleep 60")
    (job,) = await jobs(api, session)
    provider.then(
        calls(Call("bash_output", {"job": job["id"]}), Call("bash_cancel", {"job": job["id"]})),
        text("I cannot"),
    )
    other = await api.create()
    await api.ask(other, "meddle")
    assert provider.requests[-1].texts("tool") == [f"Background job not found: {job['id']}"] * 2
    assert (await api.call("GET", f"/api/session/{other}/job/{job['id']}")).status == 404
    (job,) = await jobs(api, session)
    assert job["state"] == "running"
    await api.post(f"/api/session/{session}/job/{job['id']}/cancel")


@pytest.mark.usefixtures("without_sandbox")
async def test_an_interrupt_leaves_jobs_running_and_a_deletion_ends_them(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    hold = asyncio.Event()
    provider.then(calls(background("echo $$ >shell; sleep 60")), text("thinking", hold=hold))
    session = await api.create()
    await api.prompt(session, "start it")
    await provider.arrived(2)
    await api.post(f"/api/session/{session}/interrupt")
    (job,) = await jobs(api, session)
    assert job["state"] == "running"
    shell = await until(lambda: number_in(folders.project / "shell"))
    assert table.read_identity(shell)
    assert (await api.call("DELETE", f"/api/session/{session}")).status == 204
    assert not table.read_identity(shell)
    assert not Path(job["path"]).exists()


async def test_a_background_command_needs_the_permission_of_any_other(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    asks = {"action": "bash", "resource": "*", "effect": "ask"}
    careful = make_folders(tmp_path / "careful", provider, permissions=[asks])
    provider.then(calls(background("touch never")), text("no then"))
    async with running(careful) as instance:
        api = instance.api
        session = await api.create()
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            await api.prompt(session, "start it")
            asked = (await live.until("permission.v2.asked"))[-1]["data"]
        assert (asked["action"], asked["resources"]) == ("bash", ["touch never"])
        reply = f"/api/session/{session}/permission/{asked['id']}/reply"
        await api.post(reply, {"reply": "reject"})
        await api.wait(session)
        assert await jobs(api, session) == []
    assert not (careful.project / "never").exists()


async def test_a_foreground_command_cannot_ask_for_the_time_of_a_job(
    api: Api, provider: ScriptedProvider
) -> None:
    long = limits.BASH_TIMEOUT_MILLIS_MAX + 1
    provider.then(calls(Call("bash", {"command": "true", "timeout": long})), text("shorter then"))
    session = await api.create()
    await api.ask(session, "run")
    assert "Run what takes longer with `background`" in last_tool(provider.requests[-1])


# ---- over crashes -------------------------------------------------------------------------------


async def test_a_job_survives_a_kill_and_its_end_is_told_once(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        session = await started(
            server.api, provider, "echo up; while [ ! -e stop ]; do sleep 0.02; done; exit 5"
        )
        await server.kill()
    async with server_process(folders, "second") as server:
        (job,) = await jobs(server.api, session)
        assert job["state"] == "running"
        (folders.project / "stop").touch()
        notice = await is_told(server.api, session)
        assert "has exited with code 5." in notice
        await server.kill()
    async with running(folders) as server:
        assert await told(server.api, session) == [notice]
        (job,) = await jobs(server.api, session)
        assert (job["state"], job["exitCode"]) == ("exited", 5)
    assert provider.requests_with("has exited with code 5.") == 1


async def test_a_job_that_ended_while_nobody_was_there_is_told_at_the_next_start(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as server:
        session = await started(
            server.api, provider, "while [ ! -e stop ]; do sleep 0.02; done; echo over; exit 6"
        )
        (job,) = await jobs(server.api, session)
    (folders.project / "stop").touch()
    await until(lambda: Path(job["path"] + ".exit").exists())
    async with running(folders) as server:
        notice = await is_told(server.api, session)
        assert "has exited with code 6." in notice
        assert "over" in notice


@pytest.mark.usefixtures("without_sandbox")
async def test_a_job_of_which_nothing_is_left_is_lost_and_that_is_told(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as server:
        session = await started(server.api, provider, "echo $PPID >supervisor; sleep 60")
        group = await until(lambda: number_in(folders.project / "supervisor"))
    table.signal_group(group, signal.SIGKILL)
    await until(lambda: not table.read_identity(group))
    async with running(folders) as server:
        assert "how it ended is not known" in await is_told(server.api, session)
        (job,) = await jobs(server.api, session)
        assert job["state"] == "lost"


@pytest.mark.usefixtures("without_sandbox")
async def test_a_process_that_has_the_number_of_a_job_is_left_alone(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as server:
        session = await started(server.api, provider, "echo $$ >shell; sleep 60")
        shell = await until(lambda: number_in(folders.project / "shell"))
        (job,) = await jobs(server.api, session)
    async with opened(folders.database) as database:
        # As after a restart of the machine: the number is another process's by now.
        await database.write(
            lambda tx: tx.execute(
                "UPDATE job SET identity = 'boot:1', path = path || 'x' WHERE id = :id",
                {"id": job["id"]},
            )
        )
    async with running(folders) as server:
        assert "how it ended is not known" in await is_told(server.api, session)
        assert table.read_identity(shell)
    table.signal_group(os.getpgid(shell), signal.SIGKILL)


async def test_a_neighbour_takes_over_the_jobs_of_a_process_that_died(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with (
        server_process(folders, "first") as first,
        server_process(folders, "second") as second,
    ):
        session = await started(
            first.api, provider, "while [ ! -e stop ]; do sleep 0.02; done; exit 8"
        )
        (job,) = await jobs(second.api, session)
        await first.kill()
        (folders.project / "stop").touch()
        assert f"{job['id']} has exited with code 8." in await is_told(second.api, session)


async def test_a_job_can_be_cancelled_through_another_process(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as first, running(folders) as second:
        session = await started(first.api, provider, "sleep 60")
        (job,) = await jobs(second.api, session)
        cancel = f"/api/session/{session}/job/{job['id']}/cancel"
        ended = [await api.post(cancel) for api in (second.api, first.api)]
        assert [answer["data"]["state"] for answer in ended] == ["cancelled", "cancelled"]
        assert "was cancelled." in await is_told(first.api, session)
        assert len(await told(first.api, session)) == 1


async def test_cancelling_at_once_from_many_sides_is_told_once(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await started(api, provider, "sleep 60")
    (job,) = await jobs(api, session)
    cancel = f"/api/session/{session}/job/{job['id']}/cancel"
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(api.post(cancel))
    assert "was cancelled." in await is_told(api, session)
    assert len(await told(api, session)) == 1
