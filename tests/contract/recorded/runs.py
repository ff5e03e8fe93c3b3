"""The recorded runs, made again: what the model answers, and what a client does meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from perdure.schema.codec import JsonObject
from tests.contract.recorded.stage import MODEL, SMALL, Stage
from tests.support.scripted_provider import Call, Reply, calls, cut, refusal, text

Run = Callable[[Stage], Awaitable[None]]

QUESTION: Final[JsonObject] = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}],
}
_LONG: Final = "lorem ipsum " * 1_000


def answered(*replies: Reply) -> Run:
    """One prompt without anything else."""

    async def run(stage: Stage) -> None:
        stage.provider.then(*replies)
        await stage.asked()

    return run


async def permission(stage: Stage, reply: JsonObject) -> None:
    outside = stage.project.parent / "outside.txt"
    outside.write_text("hello\n", encoding="utf-8")
    stage.provider.then(calls(Call("read", {"path": str(outside)})), text("done"))
    await stage.prompted()
    asked = await stage.until("permission.v2.asked")
    await stage.post(f"permission/{asked['data']['id']}/reply", reply)


async def question(stage: Stage, verb: str, body: JsonObject) -> None:
    stage.provider.then(calls(Call("question", {"questions": [QUESTION]})), text("done"))
    await stage.prompted()
    asked = await stage.until("question.v2.asked")
    await stage.post(f"question/{asked['data']['id']}/{verb}", body)


async def interrupted(stage: Stage, reply: Callable[[], Reply], when: str) -> None:
    stage.provider.then(reply())
    await stage.prompted()
    await stage.until(when)
    path = f"/api/session/{stage.session}/message?order=asc"
    stage.looks["meanwhile"] = await stage.api.get(path)
    await stage.post("interrupt")


async def steered_and_queued(stage: Stage) -> None:
    """Four more prompts while the model has not begun to answer."""
    hold = asyncio.Event()
    bash = calls(Call("bash", {"command": "echo hi", "description": "say"}))
    stage.provider.then(Reply(pieces=(hold, *bash.pieces)), *[text("done")] * 3)
    await stage.prompted()
    await stage.provider.arrived(1)
    for delivery in ("queue", "queue", "steer", "steer"):
        await stage.prompted(delivery=delivery)
    hold.set()


async def reverted(stage: Stage) -> None:
    stage.provider.then(
        text("one"), calls(Call("bash", {"command": "echo hi", "description": "say"}))
    )
    await stage.asked()
    second = await stage.asked()
    await stage.post("revert/stage", {"messageID": second, "files": True})
    await stage.post("revert/clear")
    await stage.post("revert/stage", {"messageID": second})
    await stage.post("revert/commit")
    third = await stage.asked()
    await stage.post("revert/stage", {"messageID": third})
    await stage.asked()


async def reverted_with_files(stage: Stage) -> None:
    stage.provider.then(text("one"), calls(Call("write", {"path": "new.txt", "content": "x"})))
    await stage.asked()
    second = await stage.asked()
    await stage.post("revert/stage", {"messageID": second, "files": True})
    await stage.post("revert/clear")
    await stage.post("revert/stage", {"messageID": second, "files": False})
    await stage.post("revert/stage", {"messageID": second})
    await stage.post("revert/commit")


async def compacted(stage: Stage) -> None:
    for _ in range(4):
        await stage.asked(_LONG)


async def instructed_otherwise(stage: Stage) -> None:
    """Instructions that change, and then are no longer there."""
    instructions = stage.project / "AGENTS.md"
    instructions.write_text("Be brief.\n", encoding="utf-8")
    await stage.asked()
    instructions.write_text("Be very brief.\n", encoding="utf-8")
    await stage.asked()
    instructions.unlink()
    await stage.asked()


RUNS: Final[Mapping[str, Run]] = {
    "default_model": answered(text("hello")),
    "bash": answered(
        calls(Call("bash", {"command": "echo hi", "description": "say"})), text("done")
    ),
    "bigbash": answered(
        calls(Call("bash", {"command": "seq 5000", "description": "count"})), text("done")
    ),
    "read": answered(calls(Call("read", {"path": "hello.txt"}), saying="look"), text("done")),
    "write": answered(calls(Call("write", {"path": "new.txt", "content": "x"})), text("done")),
    "todo": answered(
        calls(
            Call(
                "todowrite",
                {"todos": [{"id": "1", "content": "a", "status": "pending", "priority": "high"}]},
            )
        ),
        text("done"),
    ),
    "missing": answered(calls(Call("read", {"path": "nothing.txt"})), text("done")),
    "badinput": answered(calls(Call("read", {"nope": 3})), text("done")),
    "unknowntool": answered(calls(Call("nonsense", {"x": 1})), text("done")),
    "junkjson": answered(calls(Call("read", '{"path": ')), text("done")),
    "multi": answered(
        calls(Call("read", {"path": "nothing.txt"}), Call("read", {"path": "hello.txt"})),
        text("done"),
    ),
    "empty": answered(text()),
    "length": answered(text("cut off", finish="length")),
    "drop": answered(cut("half")),
    "http401": answered(refusal(401, {"error": {"message": "no"}})),
    "httpfail": answered(refusal(400, {"error": {"message": "bad"}})),
    "unknown_agent": answered(text("hello")),
    "unknown_model": answered(),
    "unknown_variant": answered(),
    "perm_once": partial(permission, reply={"reply": "once"}),
    "perm_reject": partial(permission, reply={"reply": "reject"}),
    "perm_reject_msg": partial(permission, reply={"reply": "reject", "message": "not this"}),
    "question_reply": partial(question, verb="reply", body={"answers": [["red"]]}),
    "question_reject": partial(question, verb="reject", body={}),
    "interrupt_text": partial(
        interrupted, reply=lambda: text("half", hold=asyncio.Event()), when="text.delta"
    ),
    "interrupt_tool": partial(
        interrupted,
        reply=lambda: calls(Call("bash", {"command": "sleep 30", "description": "sleep"})),
        when="tool.called",
    ),
    "steer_queue": steered_and_queued,
    "revert": reverted,
    "revert_files": reverted_with_files,
    "compaction": compacted,
    "context_update": instructed_otherwise,
}

CHOSEN: Final[Mapping[str, JsonObject]] = {
    "compaction": {"model": SMALL},
    "default_model": {},
    "unknown_agent": {"agent": "nobody", "model": MODEL},
    "unknown_model": {"model": {"providerID": "fake", "id": "none"}},
    "unknown_variant": {"model": {"providerID": "fake", "id": "fake-model", "variant": "none"}},
}
"""What the Sessions of some of them were made with; those of the others, with their model."""
