"""What the model was told can be looked at, exactly, and so can what it would be told next."""

import asyncio
from pathlib import Path

from perdure import ContextText, PluginHost, Subject
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    SECRET,
    Call,
    Request,
    ScriptedProvider,
    calls,
    text,
)


async def look(api: Api, session: str) -> JsonObject:
    return (await api.get(f"/api/session/{session}/provider-context"))["data"]


def detail(looked: JsonObject, key: str) -> JsonObject:
    (found,) = [source for source in looked["sourceDetails"] if source["key"] == key]
    return found


@requirement("S141", "S7", "S56")
async def test_the_complete_provider_context_can_be_inspected(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("Hello"))
    session = await api.create()
    before = await look(api, session)
    assert (before["sources"], before["messages"], before["pendingPrompts"]) == ([], [], 0)
    assert before.keys() & {"baseline", "baselineSeq", "epoch"} == set()
    receipt = await api.prompt(session, "hi")
    await api.wait(session)
    told = await look(api, session)
    assert {"core/date", "core/environment", "core/model"} <= {*told["sources"]}
    assert told["sources"] == [source["key"] for source in told["sourceDetails"]]
    assert told["baselineSeq"] == 1
    assert told["epoch"] == {"baselineSeq": 1, "began": receipt["timeCreated"]}
    assert told["pending"] == {"type": "nothing"}
    assert [message["type"] for message in told["messages"]] == ["user", "assistant"]
    # The baseline is the very text that was sent, at the end of the one system message.
    sent = provider.requests[0].body["messages"][0]
    assert sent["role"] == "system"
    assert sent["content"].endswith(told["baseline"])
    # It is also what was announced before.
    assert before["pending"] == {"type": "baseline", "text": told["baseline"]}
    assert {source["changed"] for source in before["sourceDetails"]} == {True}
    assert {source["changed"] for source in told["sourceDetails"]} == {False}
    assert detail(told, "core/model") == {
        "key": "core/model",
        "value": "fake/fake-model",
        "removable": True,
        "available": True,
        "changed": False,
    }


# ---- the next request ---------------------------------------------------------------------------


Said = tuple[str, ...]


def shown(request: JsonObject) -> list[Said]:
    """What was announced, in the words of the scripted provider's wire protocol."""
    said: list[Said] = [("system", "\n\n".join(request["system"]))]
    for message in request["messages"]:
        for part in message["content"]:
            match part["type"]:
                case "text" if message["role"] == "system":
                    # This protocol has no message for it, so it follows what the user said.
                    role, before = said.pop()
                    update = f"<system-update>\n{part['text']}\n</system-update>"
                    said.append((role, f"{before}\n\n{update}"))
                case "text":
                    said.append((message["role"], part["text"]))
                case "tool-call":
                    said.append(("call", part["id"], part["name"]))
                case _:
                    said.append(("tool", part["id"], part["result"]))
    return said


def sent(request: Request) -> list[Said]:
    said: list[Said] = []
    for message in request.messages:
        if message["role"] == "tool":
            said.append(("tool", message["tool_call_id"], message["content"]))
            continue
        if message.get("content"):
            said.append((message["role"], message["content"]))
        made = message.get("tool_calls", ())
        said.extend(("call", call["id"], call["function"]["name"]) for call in made)
    return said


@requirement("S141")
async def test_the_request_that_is_shown_is_the_one_that_is_sent(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("bash", {"command": "echo seen"}), saying="Looking."), text("Done"))
    session = await api.create(agent="terse")
    await api.ask(session, "first")
    other = {"id": "other-model", "providerID": "fake"}
    await api.post(f"/api/session/{session}/model", {"model": other})
    await api.prompt(session, "second", resume=False)
    await api.prompt(session, "third", resume=False)
    looked = await look(api, session)
    request = looked["request"]
    assert looked["pendingPrompts"] == 2
    assert looked["pending"]["type"] == "message"
    assert (request["agent"], request["model"]) == ("terse", other | {"variant": "default"})
    await api.prompt(session, "fourth", delivery="queue")
    made = await provider.arrived(3)
    assert shown(request) == sent(made)
    offered = [tool["function"] for tool in made.body["tools"]]
    assert [tool["name"] for tool in request["tools"]] == [tool["name"] for tool in offered]
    assert [tool["inputSchema"] for tool in request["tools"]] == [
        tool["parameters"] for tool in offered
    ]
    assert request["options"]["openai"]["promptCacheKey"] == session
    await api.wait(session)
    # Steers went together; what was queued had to wait.
    assert "fourth" not in str(shown(request))


@requirement("S141")
async def test_the_last_step_of_an_agent_is_shown_without_tools(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    allowed = {"action": "*", "resource": "*", "effect": "allow"}
    once = {"once": {"steps": 1, "system": "Once.", "permissions": [allowed]}}
    async with running(make_folders(tmp_path, provider, agents=once)) as instance:
        session = await instance.api.create(agent="once")
        request = (await look(instance.api, session))["request"]
        assert (request["tools"], request["toolChoice"]) == ([], "none")
        assert "step limit" in request["messages"][-1]["content"][0]["text"]


@requirement("S141", "S140")
async def test_looking_changes_nothing(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await api.create()
    await api.prompt(session, "waiting", resume=False)
    dumps = [database_check.dump(folders.database)]
    for _ in range(3):
        assert (await look(api, session))["pending"]["type"] == "baseline"
    dumps.append(database_check.dump(folders.database))
    assert dumps[0] == dumps[1]
    assert provider.requests == []
    # The messages of a Session are projected ones alone: nothing that was looked at is among them.
    assert (await api.get(f"/api/session/{session}/context"))["data"] == []


@requirement("S141")
async def test_a_session_that_runs_can_be_looked_at(api: Api, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.then(text("slowly", hold=hold))
    session = await api.create()
    await api.prompt(session, "one")
    await provider.arrived(1)
    looks = await asyncio.gather(*(look(api, session) for _ in range(20)))
    assert {looked["epoch"]["baselineSeq"] for looked in looks} == {1}
    hold.set()
    await api.wait(session)
    await api.ask(session, "two")
    assert provider.requests[-1].texts("assistant") == ["slowly"]


# ---- what is told next --------------------------------------------------------------------------


class Weather:
    name = "weather"

    def __init__(self) -> None:
        self.now: tuple[ContextText, ...] = ()

    def setup(self, host: PluginHost) -> None:
        host.context("now", self.look)

    async def look(self, subject: Subject) -> tuple[ContextText, ...]:
        return self.now


@requirement("S141", "S33", "S37")
async def test_a_change_shows_before_the_model_is_told(instance: Instance) -> None:
    api, weather = instance.api, Weather()
    instance.runtime.plugins.add(weather)
    session = await api.create()
    await api.ask(session, "one")
    weather.now = (ContextText(key="weather/now", text="It rains.", removed="It is dry."),)
    looked = await look(api, session)
    assert looked["pending"] == {"type": "message", "text": "It rains."}
    assert detail(looked, "weather/now") == {
        "key": "weather/now",
        "value": "It rains.",
        "removable": True,
        "available": True,
        "changed": True,
    }
    assert "weather/now" not in looked["sources"]
    messages = await api.ask(session, "two")
    assert [m["text"] for m in messages if m["type"] == "system"] == ["It rains."]
    weather.now = ()
    looked = await look(api, session)
    assert looked["pending"] == {"type": "message", "text": "It is dry."}
    assert detail(looked, "weather/now") == {
        "key": "weather/now", "removable": True, "available": True, "changed": True
    }  # fmt: skip


@requirement("S141", "S34")
async def test_which_source_a_baseline_waits_for_is_shown(
    api: Api, folders: ProjectFolders
) -> None:
    unreadable = Path(folders.variables["HOME"]) / ".config" / "opencode" / "AGENTS.md"
    unreadable.parent.mkdir(parents=True)
    # Not even the superuser can read the first page of a process.
    unreadable.symlink_to("/proc/self/mem")
    session = await api.create()
    looked = await look(api, session)
    assert looked["pending"] == {"type": "blocked", "keys": ["core/instructions"]}
    assert "core/instructions" in looked["refusal"]
    assert "request" not in looked
    assert not detail(looked, "core/instructions")["available"]


async def test_without_a_model_the_reason_is_shown(api: Api) -> None:
    missing = {"id": "no-model", "providerID": "fake"}
    session = await api.create(model=missing)
    looked = await look(api, session)
    assert "no-model" in looked["refusal"]
    assert "request" not in looked
    assert looked["pending"]["type"] == "baseline"


@requirement("S140")
async def test_of_an_unknown_session_there_is_no_provider_context(api: Api) -> None:
    answer = await api.call("GET", "/api/session/ses_none/provider-context")
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


# ---- secrets ------------------------------------------------------------------------------------


@requirement("S141")
async def test_no_secret_of_configuration_or_environment_is_shown(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    fake = configuration["providers"]["fake"]
    fake["request"]["headers"] = {"x-api-key": "canary-header"}
    fake["request"]["body"]["extra"] = "canary-body"
    fake["env"] = ["FAKE_API_KEY"]
    path.write_bytes(codec.encode(configuration))
    folders.variables["FAKE_API_KEY"] = "canary-environment"
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "one")
        await instance.api.prompt(session, "two", resume=False)
        answer = await instance.api.call("GET", f"/api/session/{session}/provider-context")
    # The provider got them, so they were there to be leaked.
    made = provider.requests[0]
    assert made.headers["x-api-key"] == "canary-header"
    assert SECRET in made.headers["authorization"]
    assert made.body["extra"] == "canary-body"
    assert answer.status == 200
    for secret in (SECRET, "canary-"):
        assert secret.encode() not in answer.body


@requirement("S72")
async def test_the_answer_to_a_prompt_is_the_receipt_of_its_admission(api: Api) -> None:
    session = await api.create()
    body = {"prompt": {"text": "hi"}, "resume": False}
    receipt = (await api.post(f"/api/session/{session}/prompt", body))["data"]
    assert receipt.keys() == {
        "admittedSeq", "id", "sessionID", "prompt", "delivery", "timeCreated"
    }  # fmt: skip
    assert (receipt["admittedSeq"], receipt["prompt"]) == (1, {"text": "hi"})
    assert await api.facts(session) == ["prompt.admitted"]


@requirement("S168")
async def test_a_file_that_nobody_can_resolve_never_reaches_the_model(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    files = [
        {"uri": "file:///nowhere/secret.bin"},
        {"uri": "http://127.0.0.1:9/a.zip"},
        {"uri": "data:text/plain,inlined"},
    ]
    body = {"prompt": {"text": "look", "files": files}}
    await api.post(f"/api/session/{session}/prompt", body)
    await api.wait(session)
    (sent,) = [m for m in provider.requests[0].body["messages"] if m["role"] == "user"]
    assert "file:///nowhere" not in sent["content"]
    assert "http://127.0.0.1:9" not in sent["content"]
    assert "inlined" in sent["content"]
