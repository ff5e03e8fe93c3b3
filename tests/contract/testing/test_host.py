"""Hosts for tests: real, alone, and gone afterwards."""

import asyncio
import os
from pathlib import Path

import perdure
from perdure.testing import (
    ManualClock,
    ScriptedModel,
    SeededIds,
    open_blocking_host,
    open_host,
    text,
    texts_of,
    tool_call,
)

PATIENCE_SECONDS = 20


async def test_a_host_answers_with_the_scripted_model_and_leaves_nothing() -> None:
    model = ScriptedModel().turn(tool_call("write", {"path": "a.txt", "content": "a"}))
    model.turn(text("Done."))
    before = asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE_SECONDS), open_host(model=model) as host:
        session = await host.sessions.create()
        await host.sessions.prompt(session.id, text="Write.")
        await host.sessions.wait(session.id)
        project = Path(session.location.directory)
        assert (project / "a.txt").read_text(encoding="utf-8") == "a"
    assert texts_of(model.requests[0]) == ["Write."]
    assert not project.parent.exists()
    assert asyncio.all_tasks() == before


async def test_nothing_of_the_user_is_read(private_home: Path) -> None:
    config = private_home / ".config" / "opencode"
    config.mkdir(parents=True)
    (config / "opencode.json").write_text('{"model": "demo/demo"}', encoding="utf-8")
    (config / "AGENTS.md").write_text("Speak like a pirate.", encoding="utf-8")
    os.environ["OPENCODE_CONFIG_CONTENT"] = '{"agents": {"pirate": {"system": "Arr."}}}'
    model = ScriptedModel().turn(text("Hello."))
    async with asyncio.timeout(PATIENCE_SECONDS), open_host(model=model) as host:
        session = await host.sessions.create()
        await host.sessions.prompt(session.id, text="hi")
        await host.sessions.wait(session.id)
        assert "pirate" not in {agent.id for agent in await host.agents.list()}
    assert "pirate" not in str(model.requests[0].system)
    for path in (config / "opencode.json", config / "AGENTS.md"):
        path.unlink()


async def test_configuration_and_further_models_are_those_of_the_test(tmp_path: Path) -> None:
    other = ScriptedModel().turn(text("Ahoy."))
    options = {"agents": {"pirate": {"system": "Arr.", "model": "mine/other"}}}
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_host(directory=tmp_path, config=options, models={"mine/other": other}) as host,
    ):
        session = await host.sessions.create(agent="pirate")
        assert session.location.directory == str(tmp_path)
        await host.sessions.prompt(session.id, text="hi")
        await host.sessions.wait(session.id)
    assert "Arr." in str(other.requests[0].system)
    assert tmp_path.exists()


async def test_a_clock_and_ids_of_the_test_make_two_runs_equal() -> None:
    async def run() -> list[object]:
        clock = ManualClock()
        model = ScriptedModel().turn(text("Hello."))
        async with open_host(model=model, clock=clock, ids=SeededIds(7, clock)) as host:
            session = await host.sessions.create()
            await host.sessions.prompt(session.id, text="hi")
            await host.sessions.wait(session.id)
            assert session.time.created == clock.now_millis()
            return [session.id, *(await host.sessions.messages(session.id)).items]

    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await run() == await run()


async def test_what_a_person_would_have_to_allow_is_refused_unless_a_test_waits() -> None:
    model = ScriptedModel().turn(tool_call("read", {"path": "/etc/hostname"})).turn(text("No."))
    async with asyncio.timeout(PATIENCE_SECONDS), open_host(model=model) as host:
        session = await host.sessions.create()
        await host.sessions.prompt(session.id, text="Read.")
        await host.sessions.wait(session.id)
        events = (await host.sessions.history(session.id)).items
    assert any(isinstance(event.data, perdure.events.ToolFailed) for event in events)


def test_a_test_without_an_event_loop_uses_the_same_host() -> None:
    model = ScriptedModel().turn(text("Hello."))
    with open_blocking_host(model) as host:
        session = host.sessions.create()
        host.sessions.prompt(session.id, text="hi")
        host.sessions.wait(session.id)
    assert len(model.requests) == 1
