"""Sessions are made once, and a prompt is kept before anything is done about it."""

import asyncio

import pytest

from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text


@requirement("S192", "S143")
async def test_creating_the_same_session_again_gives_the_first_one(
    api: Api, folders: ProjectFolders
) -> None:
    first = await api.post("/api/session", {"id": "ses_mine", "agent": "plan"})
    again = await api.post("/api/session", {"id": "ses_mine", "agent": "terse"})
    assert again == first
    assert first["data"]["agent"] == "plan"
    assert first["data"]["location"] == {"directory": str(folders.project)}
    assert len((await api.get("/api/session"))["data"]) == 1


async def test_sessions_created_at_once_under_one_id_are_one_session(api: Api) -> None:
    answers = await asyncio.gather(
        *(api.post("/api/session", {"id": "ses_race", "agent": f"a{n}"}) for n in range(20))
    )
    assert all(answer == answers[0] for answer in answers)
    assert await api.facts("ses_race") == []


async def test_creating_a_session_needs_no_body(api: Api) -> None:
    answer = await api.call("POST", "/api/session")
    assert answer.status == 200
    assert answer.json["data"]["title"].startswith("New session - ")


@requirement("S143")
async def test_a_session_lives_where_its_location_says(api: Api, folders: ProjectFolders) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    session = await api.create(location={"directory": str(inner)})
    assert (await api.session(session))["location"] == {"directory": str(inner)}


@pytest.mark.parametrize("directory", ["relative", "/no/such/directory", "/etc/hostname"])
async def test_a_directory_that_cannot_be_a_location_makes_no_session(
    api: Api, directory: str
) -> None:
    answer = await api.call("POST", "/api/session", {"location": {"directory": directory}})
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    assert (await api.get("/api/session"))["data"] == []


@requirement("S11", "S66", "S71", "S76")
async def test_an_admitted_prompt_is_on_disk_and_not_yet_said(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    receipt = await api.prompt(session, "later", id="msg_later", resume=False)
    assert receipt["admittedSeq"] == 1
    assert "promotedSeq" not in receipt
    assert await api.facts(session) == ["prompt.admitted"]
    assert await api.messages(session) == []
    assert (await api.get(f"/api/session/{session}/context"))["data"] == []
    assert (await api.get("/api/session/active"))["data"] == {}
    assert provider.requests == []


@requirement("S12", "S67", "S71", "S73", "S74")
async def test_retrying_an_admitted_prompt_starts_it_and_never_repeats_it(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    first = await api.prompt(session, "go", id="msg_go", resume=False)
    again = await api.prompt(session, "go", id="msg_go")
    assert again == first
    await api.wait(session)
    after = await api.prompt(session, "go", id="msg_go")
    await api.wait(session)
    assert after == {**first, "promotedSeq": 2}
    assert (await api.facts(session)).count("prompted") == 1
    assert len(provider.requests) == 1


@requirement("S74")
async def test_retries_that_arrive_together_are_one_prompt(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    receipts = await asyncio.gather(
        *(api.prompt(session, "once", id="msg_once") for _ in range(30))
    )
    await api.wait(session)
    assert {receipt["admittedSeq"] for receipt in receipts} == {1}
    facts = await api.facts(session)
    assert (facts.count("prompt.admitted"), facts.count("prompted")) == (1, 1)
    assert len(provider.requests) == 1


@requirement("S74")
@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": {"text": "other"}},
        {"prompt": {"text": "go", "files": [{"uri": "data:text/plain,hi"}]}},
        {"prompt": {"text": "go", "agents": [{"name": "plan"}]}},
        {"delivery": "queue"},
    ],
    ids=["text", "files", "agents", "delivery"],
)
async def test_reusing_a_prompt_id_for_something_else_is_refused(
    api: Api, changed: dict[str, object]
) -> None:
    session = await api.create()
    await api.prompt(session, "go", id="msg_go", resume=False)
    body = {"id": "msg_go", "prompt": {"text": "go"}, **changed}
    answer = await api.call("POST", f"/api/session/{session}/prompt", body)
    assert (answer.status, answer.tag) == (409, "ConflictError")
    assert answer.json["resource"] == "msg_go"
    assert await api.facts(session) == ["prompt.admitted"]


@requirement("S74")
async def test_a_prompt_id_belongs_to_one_session(api: Api) -> None:
    one, other = await api.create(), await api.create()
    await api.prompt(one, "go", id="msg_go", resume=False)
    body = {"id": "msg_go", "prompt": {"text": "go"}}
    answer = await api.call("POST", f"/api/session/{other}/prompt", body)
    assert answer.status == 409
    assert await api.facts(other) == []


@requirement("S74", "S148")
async def test_an_answer_cannot_be_overwritten_by_a_prompt_with_its_id(api: Api) -> None:
    session = await api.create()
    *_, assistant = await api.ask(session, "hello")
    body = {"id": assistant["id"], "prompt": {"text": "mine now"}}
    answer = await api.call("POST", f"/api/session/{session}/prompt", body)
    assert answer.status == 409
    assert (await api.messages(session))[-1] == assistant


async def test_files_get_their_type_when_they_are_admitted(api: Api) -> None:
    session = await api.create()
    files = [{"uri": "data:image/png;base64,AA=="}, {"uri": "file:///a/"}, {"uri": "x.json"}]
    body = {"prompt": {"text": "see", "files": files}, "resume": False}
    receipt = (await api.post(f"/api/session/{session}/prompt", body))["data"]
    types = [file["mime"] for file in receipt["prompt"]["files"]]
    assert types == ["image/png", "application/x-directory", "application/json"]


@requirement("S70", "S76")
async def test_prompts_admitted_before_a_restart_run_after_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("never", hold=asyncio.Event()))
    async with running(folders) as before:
        session = await before.api.create()
        await before.api.prompt(session, "hold")
        await provider.arrived(1)
        await before.api.prompt(session, "survive", delivery="queue")
    async with running(folders) as after:
        await after.api.wait(session)
        said = [m["text"] for m in await after.api.messages(session) if m["type"] == "user"]
        assert said == ["hold", "survive"]
        assert provider.requests[-1].texts("user")[-1] == "survive"


@requirement("S142")
async def test_a_running_session_is_active_until_it_is_idle(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    provider.then(text("thinking", hold=hold))
    session = await api.create()
    await api.prompt(session, "work")
    await provider.arrived(1)
    assert (await api.get("/api/session/active"))["data"] == {session: {"type": "running"}}
    hold.set()
    await api.wait(session)
    assert (await api.get("/api/session/active"))["data"] == {}


async def test_a_very_long_prompt_arrives_whole(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    long = "prompt " * 300_000
    await api.ask(session, long)
    assert provider.requests[0].texts("user") == [long]
