"""When a person is needed and none is there: wait, deny or fail, and never for ever by default."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from perdure.core import limits
from perdure.embedded.host import WireHost, make_settings, open_wire_host
from perdure.runtime.app.settings import RuntimeSettings
from perdure.schema.approval.permission import Headless
from perdure.schema.codec import JsonObject
from perdure.testing import ScriptedModel, tool_call
from perdure.testing import text as says
from perdure.testing.scripted_model import Call
from tests.support.api import PATIENCE_SECONDS

WRITE = tool_call("write", {"path": "made.txt", "content": "x"})
QUESTION = tool_call(
    "question",
    {
        "questions": [
            {
                "question": "Which?",
                "header": "Which",
                "options": [{"label": "red", "description": ""}],
            }
        ]
    },
)
TASK = tool_call(
    "task", {"description": "make it", "prompt": "make it", "subagent_type": "general"}
)
RULES = '{"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}'


@asynccontextmanager
async def opened(
    root: Path, model: ScriptedModel, *, headless: Headless = "wait", unattended: Headless = "wait"
) -> AsyncGenerator[WireHost]:
    (root / "project").mkdir()
    (root / "project" / "opencode.json").write_text(RULES)
    async with open_wire_host(
        str(root / "project"),
        data_dir=str(root / "data"),
        headless=headless,
        unattended=unattended,
        models={"scripted/one": model},
    ) as perdure:
        yield perdure


async def run(perdure: WireHost) -> list[JsonObject]:
    """The messages of a Session after its run has ended."""
    session = await perdure.sessions.create(model={"providerID": "scripted", "id": "one"})
    async with asyncio.timeout(PATIENCE_SECONDS):
        await perdure.sessions.prompt(session["id"], text="do it")
        await perdure.sessions.wait(session["id"])
    page = await perdure.sessions.messages(session["id"], order="asc")
    return [cast("JsonObject", message) for message in page.items]


def error_of(message: JsonObject) -> str:
    return message["content"][0]["state"]["error"]["message"]


@pytest.mark.parametrize("how", [{"headless": "deny"}, {"unattended": "deny"}])
async def test_denied_the_model_is_told_and_goes_on(
    tmp_path: Path, how: dict[str, Headless]
) -> None:
    model = ScriptedModel()
    model.turn(WRITE).turn(says("well then"))
    async with opened(tmp_path, model, **how) as perdure:
        messages = await run(perdure)
    assert "needs a person's approval" in error_of(messages[1])
    assert messages[-1]["content"][0]["text"] == "well then"
    assert not (tmp_path / "project" / "made.txt").exists()


@pytest.mark.parametrize("how", [{"headless": "fail"}, {"unattended": "fail"}])
@pytest.mark.parametrize("call", [WRITE, QUESTION])
async def test_failed_the_run_ends_and_says_why(
    tmp_path: Path, how: dict[str, Headless], call: Call
) -> None:
    model = ScriptedModel()
    model.turn(call)
    async with opened(tmp_path, model, **how) as perdure:
        messages = await run(perdure)
    assert len(messages) == 2
    assert messages[1]["finish"] == "error"
    assert "person" in messages[1]["error"]["message"]
    assert "person" in error_of(messages[1])


async def test_a_client_that_listens_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.turn(WRITE).turn(says("done"))
    async with opened(tmp_path, model, unattended="fail") as perdure:
        session = await perdure.sessions.create(model={"providerID": "scripted", "id": "one"})
        async with asyncio.timeout(PATIENCE_SECONDS):
            events = perdure.events.subscribe()
            async for event in events:
                if event["type"] == "server.connected":
                    await perdure.sessions.prompt(session["id"], text="do it")
                elif event["type"] == "permission.v2.asked":
                    request = cast("JsonObject", event)["data"]
                    await perdure.sessions.permissions.reply(session["id"], request["id"], "once")
                    break
            await events.aclose()
            await perdure.sessions.wait(session["id"])
    assert (tmp_path / "project" / "made.txt").read_text() == "x"


async def test_the_request_of_a_subagent_is_treated_alike(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.turn(TASK).turn(WRITE).turn(says("it cannot be made")).turn(says("well then"))
    async with opened(tmp_path, model, unattended="deny") as perdure:
        messages = await run(perdure)
    assert messages[-1]["content"][0]["text"] == "well then"
    assert not (tmp_path / "project" / "made.txt").exists()


def test_by_default_no_host_waits_for_ever(tmp_path: Path) -> None:
    made = make_settings(str(tmp_path), {})
    assert made.permission_timeout == limits.PERMISSION_WAIT_SECONDS
    plain = RuntimeSettings(
        environment=made.environment, data_dir=made.data_dir, default_directory=str(tmp_path)
    )
    assert plain.permission_timeout == limits.PERMISSION_WAIT_SECONDS
    assert make_settings(str(tmp_path), {"permission_timeout": None}).permission_timeout is None
