"""What was done beside a recording, so that its exchanges find what they are about."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from perdure.schema.codec import JsonObject
from tests.contract.recorded.runs import QUESTION
from tests.support.instance import Instance
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

Before = Callable[[Instance, ScriptedProvider, str], Awaitable[str]]
"""Given a Session: the id of what the exchange is about."""


async def asking(instance: Instance, provider: ScriptedProvider, session: str, kind: str) -> str:
    """A tool waits for a person."""
    outside = instance.folders.project.parent / "outside.txt"
    outside.write_text("hello\n", encoding="utf-8")
    wanted = {
        "permission": Call("read", {"path": str(outside)}),
        "question": Call("question", {"questions": [QUESTION]}),
    }
    provider.then(calls(wanted[kind]))
    async with instance.api.stream("/api/event") as live:
        await live.until("server.connected")
        await instance.api.prompt(session, "go on")
        return (await live.until(f"{kind}.v2.asked"))[-1]["data"]["id"]


async def sent_before(instance: Instance, provider: ScriptedProvider, session: str) -> str:
    await instance.api.ask(session, "hello", id="msg_reuse1")
    return "msg_reuse1"


async def last_message(instance: Instance, provider: ScriptedProvider, session: str) -> str:
    return (await instance.api.messages(session))[-1]["id"]


async def written(instance: Instance, provider: ScriptedProvider, session: str) -> str:
    """A prompt after which a file was written."""
    await instance.api.ask(session, "one")
    provider.then(calls(Call("write", {"path": "new.txt", "content": "x"})))
    message: JsonObject = await instance.api.prompt(session, "two")
    await instance.api.wait(session)
    return message["id"]


async def running(instance: Instance, provider: ScriptedProvider, session: str) -> str:
    """A prompt that is still being answered."""
    earlier = len(provider.requests)
    provider.then(text("half", hold=asyncio.Event()))
    message: JsonObject = await instance.api.prompt(session, "go on")
    await provider.arrived(earlier + 1)
    return message["id"]


_PERMISSION: Final = partial(asking, kind="permission")
_QUESTION: Final = partial(asking, kind="question")
BEFORE: Final[Mapping[str, tuple[str, str, Before]]] = {
    "pending perm_once": ("<ses11>", "<per12>", _PERMISSION),
    "pending perm_reject": ("<ses15>", "<per16>", _PERMISSION),
    "pending perm_reject_msg": ("<ses19>", "<per20>", _PERMISSION),
    "question list question_reply": ("<ses23>", "<que24>", _QUESTION),
    "question list question_reject": ("<ses26>", "<que27>", _QUESTION),
    "retry after promotion": ("<ses5>", "", sent_before),
    "prompt id = assistant id": ("<ses5>", "<msg6>", last_message),
    "message of other session": ("<ses5>", "<msg9>", last_message),
    "stage files true": ("<ses16>", "<msg17>", written),
    "1 revert stage": ("<ses1>", "<msg2>", written),
    "10 revert stage": ("<ses1>", "<msg7>", written),
    "stage while running": ("<ses20>", "<msg21>", running),
}
"""By exchange: the Session in which something is done first, and the name of what that made."""
