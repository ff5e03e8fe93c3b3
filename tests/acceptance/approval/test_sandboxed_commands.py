"""Commands in the sandbox: what needs no question, what is refused, and what a person lets out."""

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.schema.codec import JsonObject, JsonValue
from tests.skipping import cannot_run
from tests.support import polling
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.watched_processes import has_process_in

CAREFUL = {"careful": {"system": "Be careful."}}
"""An agent without rules: a person is asked about everything."""


@pytest.fixture(autouse=True)
async def wall() -> None:
    if await LocalSandbox(LocalProcesses()).wall() is None:
        cannot_run("This kernel offers no sandbox")


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory on an ordinary file system: commands have a /dev/shm of their own."""
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture
def folders(root: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(root, provider, agents=CAREFUL)
    # A project's own agent would ask in any case.
    made.configure_user(agents=CAREFUL)
    return made


def bash(command: str, **more: JsonValue) -> Call:
    return Call("bash", {"command": command, **more})


async def said(api: Api, provider: ScriptedProvider, call: Call, agent: str = "build") -> str:
    """What the model is told about a call that needs no person."""
    provider.then(calls(call), text("done"))
    session = await api.create(agent=agent)
    await api.ask(session, "do it")
    return provider.requests[-1].texts("tool")[-1]


@asynccontextmanager
async def asked(
    api: Api, provider: ScriptedProvider, call: Call, agent: str = "build"
) -> AsyncGenerator[JsonObject]:
    """The request that a call waits for; after it the run is over."""
    provider.then(calls(call), text("done"))
    session = await api.create(agent=agent)
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        yield (await live.until("permission.v2.asked"))[-1]["data"]
    await api.wait(session)


async def reply(api: Api, request: JsonObject, word: str) -> None:
    path = f"/api/session/{request['sessionID']}/permission/{request['id']}/reply"
    await api.post(path, {"reply": word})


# ---- inside -------------------------------------------------------------------------------------


async def test_a_command_that_no_rule_is_about_runs_unasked(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    await said(api, provider, bash("touch made; $(echo touch) other"), "careful")
    assert (folders.project / "made").exists()
    assert (folders.project / "other").exists()


async def test_the_user_can_be_asked_all_the_same(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    folders.configure_user(sandbox={"ask": True})
    call = bash("touch made")
    async with running(folders) as server, asked(server.api, provider, call, "careful") as request:
        assert (request["action"], request["resources"]) == ("bash", ["touch made"])
        await reply(server.api, request, "reject")
    assert not (folders.project / "made").exists()


async def test_without_a_sandbox_a_person_is_asked(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    folders.configure_user(sandbox={"mode": "danger-full-access"})
    call = bash("touch made")
    async with running(folders) as server, asked(server.api, provider, call, "careful") as request:
        await reply(server.api, request, "reject")
    assert not (folders.project / "made").exists()


@pytest.mark.parametrize("command", ["touch made", "$(echo touch) made", "echo a; touch made"])
async def test_rules_about_commands_hold_inside(
    root: Path, provider: ScriptedProvider, command: str
) -> None:
    rules = [
        {"action": "bash", "resource": "*", "effect": "allow"},
        {"action": "bash", "resource": "touch *", "effect": "ask"},
    ]
    ruled = make_folders(root / "ruled", provider, permissions=rules)
    async with running(ruled) as server, asked(server.api, provider, bash(command)) as request:
        await reply(server.api, request, "reject")
    assert not (ruled.project / "made").exists()


@pytest.mark.parametrize("background", [False, True])
async def test_nothing_is_written_outside(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, root: Path, *, background: bool
) -> None:
    (root / "other").mkdir()
    command = f"echo x > inside; echo x > {root}/other/file; touch done; sleep 0.1"
    await said(api, provider, bash(command, background=background))
    await polling.until((folders.project / "done").exists)
    assert (folders.project / "inside").read_text() == "x\n"
    assert os.listdir(root / "other") == []


async def test_the_model_is_told_what_the_sandbox_may_have_refused(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, root: Path
) -> None:
    told = await said(api, provider, bash(f"touch {root / 'home'}/file"))
    assert "Read-only file system" in told
    assert f"It can write only to {folders.project}" in told
    assert "`outside`" in told
    told = await said(api, provider, bash("echo 'Permission denied'"))
    assert "sandbox" not in told
    told = await said(api, provider, bash("echo of its own; exit 3"))
    assert "sandbox" not in told


async def test_secrets_of_the_server_are_out_of_reach(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    secret = "canary-of-the-server"
    folders.configure_user(instructions=[secret])
    folders.variables["OPENAI_API_KEY"] = secret
    async with running(folders) as server:
        for command in (
            f"cat {folders.data}/* {folders.data}/*/*",
            f"cat {folders.environment.config_dir}/opencode.json",
            "cat /proc/[0-9]*/environ",
            f"cat /proc/{os.getpid()}/environ",
            "cat /proc/$PPID/environ /proc/1/environ",
            "env",
        ):
            told = await said(server.api, provider, bash(command))
            assert secret not in told, command


async def test_in_read_only_mode_only_temporary_files_are_written(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    folders.configure_user(sandbox={"mode": "read-only"})
    command = "touch made; echo x > $TMPDIR/file && cat $TMPDIR/file opencode.json | head -c 3"
    async with running(folders) as server:
        told = await said(server.api, provider, bash(command))
    assert not (folders.project / "made").exists()
    assert "Read-only file system" in told
    assert "x\n{" in told


async def test_the_git_directory_is_writable_but_for_what_git_obeys(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    git_dir = folders.project / ".git"
    for name in ("objects", "refs"):
        (git_dir / name).mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "config").write_text("[core]\n")
    command = (
        "echo x > .git/index; echo x > .git/hooks/pre-commit; echo x > .git/config;"
        " echo /evil > .git/commondir; mv .git .moved"
    )
    told = await said(api, provider, bash(command))
    assert f"It made {git_dir}/commondir" in told
    assert sorted(path.name for path in git_dir.iterdir()) == [
        *("HEAD", "config", "hooks", "index", "objects", "refs")
    ]
    assert list((git_dir / "hooks").iterdir()) == []
    assert (git_dir / "config").read_text() == "[core]\n"


async def test_an_interrupted_command_leaves_nothing_running(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    loop = "while :; do echo x >> alive; sleep 0.02; done"
    provider.then(calls(bash(f"setsid env -i sh -c '{loop}' & {loop}")))
    session = await api.create()
    await api.prompt(session, "go on for ever")
    await polling.until((folders.project / "alive").exists)
    await api.post(f"/api/session/{session}/interrupt")
    await polling.until(lambda: not has_process_in(folders.project))


# ---- outside ------------------------------------------------------------------------------------


async def test_a_person_lets_a_command_out_once(
    api: Api, provider: ScriptedProvider, root: Path
) -> None:
    command = f"echo out > {root / 'home'}/file"
    async with asked(api, provider, bash(command, outside=True)) as request:
        assert (request["action"], request["resources"]) == ("outside_sandbox", [command])
        assert request["save"] == [command]
        assert not (root / "home" / "file").exists()
        await reply(api, request, "once")
    assert (root / "home" / "file").read_text() == "out\n"
    async with asked(api, provider, bash(command, outside=True)) as request:
        await reply(api, request, "reject")


async def test_always_means_exactly_this_command(
    api: Api, provider: ScriptedProvider, root: Path
) -> None:
    command = f"echo out >> {root / 'home'}/file"
    async with asked(api, provider, bash(command, outside=True)) as request:
        await reply(api, request, "always")
    await said(api, provider, bash(command, outside=True))
    assert (root / "home" / "file").read_text() == "out\nout\n"
    # Inside it is refused as before, and another command is asked about.
    assert "sandbox" in await said(api, provider, bash(command))
    async with asked(api, provider, bash(f"{command}; true", outside=True)) as request:
        await reply(api, request, "reject")
    assert (root / "home" / "file").read_text() == "out\nout\n"


async def test_no_rule_lets_a_command_out(root: Path, provider: ScriptedProvider) -> None:
    rules = [{"action": "outside_sandbox", "resource": "*", "effect": "allow"}]
    ruled = make_folders(root / "ruled", provider, permissions=rules)
    call = bash(f"echo out > {root}/file", outside=True)
    async with running(ruled) as server, asked(server.api, provider, call) as request:
        await reply(server.api, request, "reject")
    assert not (root / "file").exists()


async def test_a_rule_can_keep_every_command_in(root: Path, provider: ScriptedProvider) -> None:
    rules = [{"action": "outside_sandbox", "resource": "*", "effect": "deny"}]
    ruled = make_folders(root / "ruled", provider, permissions=rules)
    async with running(ruled) as server:
        call = bash(f"echo out > {root}/file", outside=True)
        assert "outside_sandbox" in await said(server.api, provider, call)
    assert not (root / "file").exists()


async def test_a_denied_command_is_not_asked_about(root: Path, provider: ScriptedProvider) -> None:
    rules = [{"action": "bash", "resource": "touch *", "effect": "deny"}]
    ruled = make_folders(root / "ruled", provider, permissions=rules)
    async with running(ruled) as server:
        told = await said(server.api, provider, bash(f"touch {root}/file", outside=True))
    assert "bash" in told
    assert not (root / "file").exists()


# ---- other programs -----------------------------------------------------------------------------


def edit_programs(script: str) -> JsonObject:
    """A formatter, a checker and a language server that run a script on the file."""
    program = {"command": ["sh", "-c", script, "x", "$FILE"], "extensions": [".txt"]}
    return {
        "formatter": {"one": program},
        "experimental": {"diagnostics": {"two": program}},
        "lsp": {"three": {**program, "command": ["sh", "-c", script]}},
    }


async def test_programs_that_run_after_an_edit_are_inside(
    provider: ScriptedProvider, folders: ProjectFolders, root: Path
) -> None:
    out = f"{root / 'home'}/escaped"
    script = f"echo x >> inside; echo x >> {out}; cat {folders.data}/* >> found; echo $1 >> files"
    folders.configure_user(**edit_programs(script))
    async with running(folders) as server:
        call = Call("write", {"path": "a.txt", "content": "text\n"})
        await said(server.api, provider, call)
        inside = folders.project / "inside"
        await polling.until(lambda: inside.exists() and inside.read_text() == "x\n" * 3)
    assert not Path(out).exists()
    assert (folders.project / "found").read_text() == ""


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
async def test_a_formatter_may_write_the_file_that_was_edited(
    provider: ScriptedProvider, folders: ProjectFolders, root: Path, mode: str
) -> None:
    script = "tr a-z A-Z < $1 > $TMPDIR/new; cat $TMPDIR/new > $1; echo x > $1.other"
    formatter = edit_programs(script)["formatter"]
    rule = {"action": "external_directory", "resource": "*", "effect": "allow"}
    folders.configure_user(sandbox={"mode": mode}, formatter=formatter, permissions=[rule])
    async with running(folders) as server:
        for path in ("a.txt", f"{root / 'home'}/b.txt"):
            await said(server.api, provider, Call("write", {"path": path, "content": "text\n"}))
    assert (folders.project / "a.txt").read_text() == "TEXT\n"
    assert (folders.project / "a.txt.other").exists() == (mode == "workspace-write")
    assert (root / "home" / "b.txt").read_text() == "TEXT\n"
    assert not (root / "home" / "b.txt.other").exists()
