"""An inbox takes so many prompts and no more, says so, and has room again when some have left."""

import asyncio
from collections import Counter

import pytest

from perdure.client import WireClient
from perdure.client.errors import WireError
from perdure.client.generated.failures import is_inbox_full
from perdure.core import limits
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.prompt import PromptInput
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.instance import Instance
from tests.support.scripted_provider import ScriptedProvider, text

AT_ONCE = 20


async def send(api: Api, session: str, number: int) -> Answer:
    body = {"id": f"msg_{number}", "prompt": {"text": str(number)}, "resume": False}
    return await api.call("POST", f"/api/session/{session}/prompt", body)


async def fill(instance: Instance, session: str, prompts: range) -> None:
    """Prompts that wait, without the way over a socket."""
    for number in prompts:
        await instance.runtime.sessions.prompt(
            SessionID(session),
            PromptInput(text=str(number)),
            id=MessageID(f"msg_{number}"),
            resume=False,
        )


@requirement("S69")
async def test_a_full_inbox_refuses_more_and_loses_nothing(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, most = instance.api, limits.INBOX_PENDING_MAX
    session = await api.create()
    almost = most - AT_ONCE // 2
    await fill(instance, session, range(almost))
    # Half of what comes at the same time has room.
    arriving = range(almost, almost + AT_ONCE)
    answers = await asyncio.gather(*(send(api, session, number) for number in arriving))
    statuses = Counter(answer.status for answer in answers)
    assert statuses == {200: AT_ONCE // 2, 429: AT_ONCE // 2}

    async with WireClient(f"http://127.0.0.1:{api.port}") as client:
        with pytest.raises(WireError) as refused:
            await client.sessions.prompt(session, prompt={"text": "one more"}, resume=False)
    assert refused.value.status == 429
    assert is_inbox_full(refused.value.value)
    assert (refused.value.value["sessionID"], refused.value.value["limit"]) == (session, most)
    waiting = (await api.get(f"/api/session/{session}/inbox"))["data"]
    assert len(waiting) == most

    # A client that saw no answer to an admission still gets its receipt.
    again = await send(api, session, 0)
    assert (again.status, again.json["data"]["admittedSeq"]) == (200, 1)
    # Other Sessions are none of its business.
    assert (await send(api, await api.create(), most + AT_ONCE + 1)).status == 200

    # One that is cancelled makes room for one, one that is promoted for all steers with it.
    assert (await api.call("DELETE", f"/api/session/{session}/inbox/msg_0")).status == 204
    assert (await send(api, session, most + AT_ONCE)).status == 200
    assert (await send(api, session, most + AT_ONCE + 2)).status == 429
    provider.then(text("all of it"))
    await api.post(f"/api/session/{session}/resume")
    await api.wait(session)
    assert (await send(api, session, most + AT_ONCE + 2)).status == 200
    facts = Counter(await api.facts(session))
    assert facts["prompt.admitted"] == most + 2
    assert facts["prompted"] == most
    await database_check.check(instance.folders.database)
