"""Shell commands before a person: shown in parts, approved by patterns, and run without secrets."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

RULES = [
    {"action": "bash", "resource": "*", "effect": "ask"},
    {"action": "bash", "resource": "echo *", "effect": "allow"},
    {"action": "bash", "resource": "rm *", "effect": "deny"},
]


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider, permissions=RULES)


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


async def last_state(api: Api, session: str) -> JsonObject:
    messages = await api.messages(session)
    parts = [part for m in messages if m["type"] == "assistant" for part in m["content"]]
    return [part["state"] for part in parts if part["type"] == "tool"][-1]


@asynccontextmanager
async def request_for(
    api: Api, provider: ScriptedProvider, session: str, command: str
) -> AsyncGenerator[JsonObject]:
    """The request that a call with `command` waits for; the Session is idle afterwards."""
    provider.then(calls(bash(command)), text("done"))
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        yield (await live.until("permission.v2.asked"))[-1]["data"]
    await api.wait(session)


async def reply(api: Api, request: JsonObject, word: str) -> None:
    path = f"/api/session/{request['sessionID']}/permission/{request['id']}/reply"
    await api.post(path, {"reply": word})


@requirement("S178")
async def test_a_person_is_shown_the_parts_and_always_saves_a_pattern_for_each(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    outside = f"> {folders.project.parent}/outside"
    command = f"git status -s | wc -l && echo x {outside}; true"
    async with request_for(api, provider, session, command) as request:
        assert request["resources"] == [command]
        assert request["save"] == ["git status *", "wc *", "echo *", outside, "true *"]
        assert request["metadata"] == {
            "workdir": str(folders.project),
            "parts": [
                {"text": "git status -s", "pattern": "git status *"},
                {"text": "wc -l", "pattern": "wc *"},
                {"text": "echo x", "pattern": "echo *"},
                {"text": outside, "pattern": outside, "outside": True},
                {"text": "true", "pattern": "true *"},
            ],
        }
        await reply(api, request, "always")
    provider.then(calls(bash(f"cd . && git status --short; true | wc -w {outside}")), text("done"))
    await api.ask(session, "more")
    assert (await last_state(api, session))["status"] == "completed"
    async with request_for(api, provider, session, "git status > elsewhere") as request:
        assert request["save"] == ["git status *", "> elsewhere"]
        await reply(api, request, "reject")


@requirement("S178")
@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("sort in", "sort -o made in"),
        ("sort in", "sort --comp=touch in"),
        ("git diff", "git diff -U --output=made"),
        ("git grep a", "git grep -Otouch a"),
        ("git status", "git -C . status"),
        ("git fetch", "git fetch --upload-pack=touch"),
        ("test -f in", "test -v 'a[$(touch made)]'"),
        ("wc in", "wc in =~\ntouch made"),
    ],
)
async def test_always_for_the_plain_form_does_not_allow_another(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, plain: str, other: str
) -> None:
    session = await api.create()
    async with request_for(api, provider, session, plain) as request:
        await reply(api, request, "always")
    provider.then(calls(bash(plain)), text("done"))
    await api.ask(session, "again")
    async with request_for(api, provider, session, other) as request:
        assert request["resources"] == [other]
        await reply(api, request, "reject")
    assert not (folders.project / "made").exists()


@requirement("S178")
async def test_one_denied_part_denies_all_of_it(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    for command in ("echo a && rm b", "echo $(rm b)", "bash -c '\"rm\" b'", "sudo /bin/rm b"):
        provider.then(calls(bash(command)), text("done"))
        await api.ask(session, "do it")
        state = await last_state(api, session)
        assert state["status"] == "error"
        assert "Denied by the rule bash rm *" in state["error"]["message"]


async def test_what_is_not_understood_is_asked_and_can_be_approved_as_it_is(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    async with request_for(api, provider, session, "$NOTHING echo a") as request:
        assert "only known when it runs" in request["metadata"]["unclear"]
        assert request["save"] == ["$NOTHING echo a"]
        await reply(api, request, "always")
    provider.then(calls(bash("$NOTHING echo a")), text("done"))
    await api.ask(session, "again")
    assert (await last_state(api, session))["status"] == "completed"
    async with request_for(api, provider, session, "$NOTHING echo a; $X") as request:
        await reply(api, request, "reject")


async def test_commands_get_no_secrets_unless_the_user_says_so(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    folders.variables.update(SOME_API_KEY="hidden", SOME_TOKEN="shown", SOME_THING="plain")
    user = Path(folders.variables["HOME"]) / ".config/opencode"
    user.mkdir(parents=True)
    allowed = '{"experimental": {"bash": {"allowed_variables": ["SOME_TOK*"]}}}'
    (user / "opencode.json").write_text(allowed)
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(calls(bash("env | sort")), text("done"))
        await instance.api.ask(session, "look")
        shown = (await last_state(instance.api, session))["content"][0]["text"]
    assert "SOME_TOKEN=shown" in shown
    assert "SOME_THING=plain" in shown
    assert "hidden" not in shown


@requirement("S139")
async def test_what_an_interrupted_command_had_printed_stays_with_its_call(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        os.mkfifo(folders.project / "running")
        provider.then(calls(bash("echo said before; echo on > running; exec sleep 60")))
        await api.prompt(session, "sleep")
        await asyncio.to_thread((folders.project / "running").read_text)
        await api.post(f"/api/session/{session}/interrupt")
        state = await last_state(api, session)
        facts = await api.facts(session)
    assert (state["status"], state["error"]["message"]) == ("error", "Tool execution interrupted")
    assert state["content"] == [{"type": "text", "text": "said before\n"}]
    assert facts.count("tool.failed") == 1
    assert facts.index("tool.progress") < facts.index("tool.failed")


async def test_the_grammar_is_loaded_only_for_a_command_that_is_not_literal() -> None:
    code = (
        "import sys; from perdure.tools.builtin import bash_approval;"
        "from perdure.tools.shell import parser;"
        "parser.parse_script('sh', 'a | b');"
        "before = 'tree_sitter' in sys.modules; parser.parse_script('sh', '$a');"
        "print(before, 'tree_sitter' in sys.modules)"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert said == b"False True\n"
