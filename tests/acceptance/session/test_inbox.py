"""What waits in a Session can be seen and changed, until it is promoted and not a moment longer."""

import asyncio

from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text


async def busy(api: Api, provider: ScriptedProvider, hold: asyncio.Event) -> str:
    """A Session whose first answer waits for `hold`."""
    provider.then(text("first", hold=hold))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    return session


async def waiting(api: Api, session: str) -> list[tuple[str, str]]:
    found = (await api.get(f"/api/session/{session}/inbox"))["data"]
    return [(entry["delivery"], entry["prompt"]["text"]) for entry in found]


@requirement("S69")
async def test_a_queue_can_be_put_in_another_order(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    session = await busy(api, provider, hold)
    ids = [
        (await api.prompt(session, name, delivery="queue"))["id"]
        for name in ("one", "two", "three")
    ]
    body = {"messageIDs": [ids[2], ids[0], ids[1]]}
    await api.post(f"/api/session/{session}/inbox/order", body)
    expected = [("queue", "three"), ("queue", "one"), ("queue", "two")]
    assert await waiting(api, session) == expected
    provider.then(text("a"), text("b"), text("c"))
    hold.set()
    await api.wait(session)
    said = [m["text"] for m in await api.messages(session) if m["type"] == "user"]
    assert said == ["start", "three", "one", "two"]
    await database_check.check(instance.folders.database)


async def test_a_revised_prompt_is_what_the_model_is_told(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    session = await busy(api, provider, hold)
    prompt = await api.prompt(session, "delete it", delivery="queue")
    path = f"/api/session/{session}/inbox/{prompt['id']}"
    answer = await api.call("PATCH", path, {"prompt": {"text": "keep it"}})
    assert (answer.status, answer.json["data"]["prompt"]["text"]) == (200, "keep it")
    provider.then(text("kept"))
    hold.set()
    await api.wait(session)
    assert provider.requests[-1].texts("user")[-1] == "keep it"
    again = await api.prompt(session, "delete it", id=prompt["id"], delivery="queue")
    assert again["id"] == prompt["id"], "sent once more by a client that saw no answer"
    assert await waiting(api, session) == []
    await database_check.check(instance.folders.database)


async def test_a_queued_prompt_can_be_made_to_join_at_once(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    session = await busy(api, provider, hold)
    await api.prompt(session, "another time", delivery="queue")
    urgent = await api.prompt(session, "right now", delivery="queue")
    path = f"/api/session/{session}/inbox/{urgent['id']}"
    assert (await api.call("PATCH", path, {"delivery": "steer"})).status == 200
    assert await waiting(api, session) == [("steer", "right now"), ("queue", "another time")]
    provider.then(text("b"), text("c"))
    hold.set()
    await api.wait(session)
    said = [m["text"] for m in await api.messages(session) if m["type"] == "user"]
    assert said == ["start", "right now", "another time"]


async def test_a_cancelled_prompt_never_runs_not_even_when_it_is_sent_again(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    session = await busy(api, provider, hold)
    prompt = await api.prompt(session, "never mind", delivery="queue")
    path = f"/api/session/{session}/inbox/{prompt['id']}"
    assert (await api.call("DELETE", path)).status == 204
    assert (await api.call("DELETE", path)).status == 204
    assert await waiting(api, session) == []
    again = await api.prompt(session, "never mind", id=prompt["id"], delivery="queue")
    assert again["admittedSeq"] == prompt["admittedSeq"]
    refused = await api.call("PATCH", path, {"delivery": "steer"})
    assert (refused.status, refused.json["state"]) == (409, "cancelled")
    hold.set()
    await api.wait(session)
    assert provider.requests_with("never mind") == 0
    await database_check.check(instance.folders.database)


async def test_cancelling_the_only_prompt_of_an_idle_session_leaves_nothing_to_ask(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    prompt = await api.prompt(session, "not yet", resume=False)
    assert await waiting(api, session) == [("steer", "not yet")]
    assert (await api.call("DELETE", f"/api/session/{session}/inbox/{prompt['id']}")).status == 204
    await api.post(f"/api/session/{session}/resume")
    await api.wait(session)
    assert provider.requests == []


async def test_resuming_runs_what_waits(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("done"))
    session = await api.create()
    await api.prompt(session, "later", resume=False)
    await api.post(f"/api/session/{session}/resume")
    await api.wait(session)
    assert (await api.messages(session))[-1]["content"][0]["text"] == "done"


async def test_what_is_promoted_cannot_be_changed(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("done"))
    session = await api.create()
    prompt = await api.prompt(session, "said")
    await api.wait(session)
    path = f"/api/session/{session}/inbox/{prompt['id']}"
    for method, body in (("DELETE", None), ("PATCH", {"prompt": {"text": "x"}})):
        answer = await api.call(method, path, body)
        assert (answer.status, answer.tag, answer.json["state"]) == (
            409,
            "ConflictError",
            "promoted",
        )
    order = await api.call(
        "POST", f"/api/session/{session}/inbox/order", {"messageIDs": [prompt["id"]]}
    )
    assert order.status == 409


async def test_prompts_of_another_session_are_not_there(
    api: Api, provider: ScriptedProvider
) -> None:
    mine, other = await api.create(), await api.create()
    prompt = await api.prompt(other, "theirs", resume=False)
    for method, body in (("DELETE", None), ("PATCH", {"delivery": "queue"})):
        answer = await api.call(method, f"/api/session/{mine}/inbox/{prompt['id']}", body)
        assert (answer.status, answer.tag) == (404, "MessageNotFoundError")
    twice = {"messageIDs": [prompt["id"]] * 2}
    assert (await api.call("POST", f"/api/session/{other}/inbox/order", twice)).status == 400
    assert await waiting(api, other) == [("steer", "theirs")]


async def test_cancels_that_race_with_promotion_either_win_or_are_refused(
    instance: Instance, provider: ScriptedProvider
) -> None:
    """Each prompt is answered once or cancelled, never both and never neither."""
    api = instance.api
    provider.then(*(text("ok") for _ in range(40)))
    session = await api.create()
    prompts = [(await api.prompt(session, f"p{n}", resume=False))["id"] for n in range(20)]
    await api.post(f"/api/session/{session}/resume")
    answers = await asyncio.gather(
        *(api.call("DELETE", f"/api/session/{session}/inbox/{one}") for one in prompts)
    )
    await api.wait(session)
    said = {m["id"] for m in await api.messages(session) if m["type"] == "user"}
    cancelled = {one for one, a in zip(prompts, answers, strict=True) if a.status == 204}
    refused = {one for one, a in zip(prompts, answers, strict=True) if a.status == 409}
    assert cancelled | refused == set(prompts)
    assert said == refused
    assert await waiting(api, session) == []
    await database_check.check(instance.folders.database)


async def test_the_inbox_is_the_same_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        first = await api.prompt(session, "one", delivery="queue", resume=False)
        second = await api.prompt(session, "two", delivery="queue", resume=False)
        await api.post(
            f"/api/session/{session}/inbox/order", {"messageIDs": [second["id"], first["id"]]}
        )
        before = await waiting(api, session)
    provider.then(text("a"), text("b"))
    async with running(folders) as instance:
        assert await waiting(instance.api, session) == before
        await instance.api.post(f"/api/session/{session}/resume")
        await instance.api.wait(session)
        messages = await instance.api.messages(session)
    assert before == [("queue", "two"), ("queue", "one")]
    assert [m["text"] for m in messages if m["type"] == "user"] == ["two", "one"]
