"""A plugin tells every Session something and offers tools; reloading it is one step."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from perdure import (
    ContextText,
    LocationRef,
    PluginError,
    PluginHost,
    Subject,
    Tool,
    ToolCallContext,
)
from perdure.embedded.host import open_wire_host
from perdure.schema.codec import Record
from perdure.testing import ScriptedModel, text, texts_of
from tests.contract.client.hosts import PATIENCE_SECONDS
from tests.requirements import requirement


class Sky(Record):
    colour: str


async def paint(input: Sky, context: ToolCallContext) -> Sky:
    return input


class Weather:
    """Tells the weather; `tool` is what it offers, if anything."""

    name = "weather"

    def __init__(self, now: str, *, tool: str | None = None, key: str = "now") -> None:
        self.now = now
        self._tool = tool
        self._key = key

    def setup(self, host: PluginHost) -> None:
        host.context(self._key, self.look)
        if self._tool is not None:
            host.tool(
                Tool(name=self._tool, description="paints", input=Sky, output=Sky, execute=paint)
            )

    async def look(self, subject: Subject) -> tuple[ContextText, ...]:
        assert subject.session_id.startswith("ses_")
        key = f"weather/{self._key}"
        return (ContextText(key=key, text=self.now, removed="The weather is unknown."),)


@requirement("S83", "S26")
async def test_a_plugin_is_told_reloaded_and_withdrawn_at_the_next_boundary(tmp_path: Path) -> None:
    model = ScriptedModel()
    for number in range(4):
        model.turn(text(f"answer {number}"))
    async with open_wire_host(
        str(tmp_path), data_dir=str(tmp_path / "data"), models={"mine/first": model}
    ) as perdure:
        perdure.plugins.add(Weather("It rains.", tool="paint"))
        session = await perdure.sessions.create(model={"providerID": "mine", "id": "first"})

        async def told() -> list[str]:
            await perdure.sessions.prompt(session["id"], text="go on")
            await perdure.sessions.wait(session["id"])
            page = await perdure.sessions.messages(session["id"], order="asc", limit=100)
            return [item["text"] for item in page.items if item["type"] == "system"]

        assert await told() == []
        assert "It rains." in model.requests[0].system[-1]
        assert "paint" in {tool.name for tool in model.requests[0].tools}
        perdure.plugins.add(Weather("It snows."))
        assert await told() == ["It snows."]
        assert "paint" not in {tool.name for tool in model.requests[1].tools}
        assert await told() == ["It snows."]
        perdure.plugins.remove("weather")
        assert await told() == ["It snows.", "The weather is unknown."]
        assert perdure.plugins.names() == ()
        assert model.requests[3].system == model.requests[0].system
        assert texts_of(model.requests[3], "system") == ["It snows.", "The weather is unknown."]


@requirement("S83")
async def test_a_reload_that_cannot_be_made_leaves_the_plugin_as_it_was(tmp_path: Path) -> None:
    async with open_wire_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        perdure.plugins.add(Weather("It rains.", tool="paint"))
        with pytest.raises(PluginError, match="not namespace/name"):
            perdure.plugins.add(Weather("It snows.", key="Now!"))
        with pytest.raises(PluginError, match="invalid tool name"):
            perdure.plugins.add(Weather("It snows.", tool="paint it"))
        assert perdure.plugins.names() == ("weather",)
        assert perdure.tools.names() == {"paint"}


@pytest.mark.parametrize("name", ["", "core", "Weather", "../up", "a/b", "x" * 65])
async def test_a_plugin_needs_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    plugin = Weather("It rains.")
    plugin.name = name
    async with open_wire_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        with pytest.raises(PluginError, match="cannot be the name"):
            perdure.plugins.add(plugin)


@requirement("S32", "S49")
async def test_sources_are_looked_at_only_at_a_boundary_and_wake_nobody(tmp_path: Path) -> None:
    model = ScriptedModel().turn(text("one")).turn(text("two"))
    weather = Weather("It rains.")
    looks: list[str] = []

    class Counted(Weather):
        async def look(self, subject: Subject) -> tuple[ContextText, ...]:
            looks.append(subject.session_id)
            return await weather.look(subject)

    async with open_wire_host(
        str(tmp_path), data_dir=str(tmp_path / "data"), models={"mine/first": model}
    ) as perdure:
        perdure.plugins.add(Counted(""))
        session = await perdure.sessions.create(model={"providerID": "mine", "id": "first"})
        assert looks == []
        await perdure.sessions.prompt(session["id"], text="one")
        await perdure.sessions.wait(session["id"])
        weather.now = "It snows."
        await perdure.sessions.wait(session["id"])
        page = await perdure.sessions.messages(session["id"], order="asc")
        assert [item["type"] for item in page.items] == ["user", "assistant"]
        assert looks == [session["id"]]
        await perdure.sessions.prompt(session["id"], text="two")
        await perdure.sessions.wait(session["id"])
        page = await perdure.sessions.messages(session["id"], order="asc")
        assert [item["type"] for item in page.items][2:] == ["user", "system", "assistant"]
        assert looks == [session["id"]] * 2


class Shell:
    """Lays variables over those of terminals; what it gives may be anything."""

    def __init__(self, name: str, given: Mapping[str, str] | Exception) -> None:
        self.name = name
        self._given = given
        self.asked: list[tuple[LocationRef, str]] = []

    def setup(self, host: PluginHost) -> None:
        host.pty_environment(self.variables)

    async def variables(self, ref: LocationRef, directory: str) -> Mapping[str, str]:
        self.asked.append((ref, directory))
        if isinstance(self._given, Exception):
            raise self._given
        return self._given


@requirement("S94", "S95")
async def test_plugins_lay_variables_over_those_of_a_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sub").mkdir()
    out = tmp_path / "out.txt"
    shells = [
        Shell("b", {"B": "of b", "C": "of b", "TERM": "dumb"}),
        Shell("a", {"B": "of a"}),
        Shell("raising", ZeroDivisionError("no")),
        Shell("spoilt", {"D": "x", "A=B": "y"}),
    ]
    async with open_wire_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        for shell in shells:
            perdure.plugins.add(shell)
        caplog.set_level(logging.WARNING)
        perdure.plugins.remove("nobody")
        async with asyncio.timeout(PATIENCE_SECONDS):
            script = f'echo "$A/$B/$C/$D/$TERM" > {out}'
            made = await perdure.terminals.create(
                "/bin/sh", ("-c", script), cwd="sub", env={"A": "caller", "B": "caller"}
            )
            async with aclosing(perdure.events.subscribe()) as events:
                # The greeting says that we listen; the end came before, or we hear of it.
                while (await anext(events))["type"] != "pty.exited":
                    if (await perdure.terminals.get(made["id"]))["status"] == "exited":
                        break
        perdure.plugins.remove("b")
        perdure.plugins.remove("a")
    assert out.read_text() == "caller/of b/of b//xterm-256color\n"
    assert shells[0].asked == [(LocationRef(str(tmp_path)), f"{tmp_path}/sub")]
    reports = [text for text in caplog.messages if text.startswith("PTY Environment")]
    assert [text.split()[3] for text in reports] == ["raising", "spoilt"]
