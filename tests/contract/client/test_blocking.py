"""Programs without an event loop: a client of a server, and a host in the same process."""

import asyncio
import os
from pathlib import Path

import pytest

import perdure
from perdure import AssistantMessage, SessionID, TextPart
from perdure.testing import ScriptedModel, open_blocking_host, pause, text, tool_call
from tests.contract.client.hosts import PATIENCE_SECONDS, project, served


def converse(client: perdure.BlockingClient | perdure.BlockingHost) -> list[str]:
    """What the model said, read by every kind of call: plain, paged, streamed."""
    session = client.sessions.create(model="demo/demo")
    client.sessions.prompt(session.id, text="hello")
    client.sessions.wait(session.id)
    told = len(client.sessions.history(session.id).items)
    events = client.sessions.events(session.id)
    assert [next(events).durable.seq for _ in range(told)] == list(range(1, told + 1))
    events.close()
    # An abandoned stream does not stand in the way of the next call.
    page = client.sessions.messages(session.id, order="asc")
    answers = [message for message in page.items if isinstance(message, AssistantMessage)]
    return [part.text for one in answers for part in one.content if isinstance(part, TextPart)]


async def test_a_client_without_a_loop_holds_a_conversation(tmp_path: Path) -> None:
    def program(url: str) -> list[str]:
        with perdure.connect_blocking(url) as client:
            with pytest.raises(perdure.SessionNotFoundError):
                client.sessions.get(SessionID("ses_missing"))
            return converse(client)

    async with asyncio.timeout(PATIENCE_SECONDS), served(tmp_path) as url:
        (said,) = await asyncio.to_thread(program, url)
    assert said.startswith("This is the demo model")


def test_a_host_without_a_loop_holds_a_conversation(tmp_path: Path) -> None:
    directory, data_dir = str(project(tmp_path)), str(tmp_path / "data")
    with perdure.open_blocking(directory, data_dir=data_dir) as host:
        (said,) = converse(host)
    assert said.startswith("This is the demo model")
    with perdure.open_blocking(directory, data_dir=data_dir) as host:
        assert len(host.sessions.list().items) == 1


def test_reading_events_lets_the_host_work() -> None:
    model = ScriptedModel().turn(tool_call("shout", {"word": "hey"})).turn(text("Done."))

    @perdure.tool
    def shout(word: str) -> str:
        """Shout a word."""
        return word.upper()

    with open_blocking_host(model) as host, host.tools.register(shout):
        session = host.sessions.create()
        host.sessions.prompt(session.id, text="go")
        seen: list[str] = []
        for event in host.sessions.events(session.id):
            seen.append(type(event.data).__name__)
            if isinstance(event.data, perdure.events.StepEnded) and len(model.requests) == 2:
                break
    assert "ToolSucceeded" in seen


def test_a_host_is_closed_while_a_turn_runs_and_a_stream_is_open(tmp_path: Path) -> None:
    def program() -> None:
        model = ScriptedModel().turn(text("never finished", hold=pause()))
        with open_blocking_host(model, directory=tmp_path) as host:
            session = host.sessions.create()
            host.sessions.prompt(session.id, text="go")
            live = host.events.subscribe()
            assert next(live).type == "server.connected"
            next(event for event in live if isinstance(event.data, perdure.events.TextDelta))
        with pytest.raises(RuntimeError, match="closed"):
            next(live)

    # What a process opens once and keeps is open after the first time.
    program()
    files = len(os.listdir("/proc/self/fd"))
    program()
    assert len(os.listdir("/proc/self/fd")) == files


def test_an_error_of_the_body_comes_out_as_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError), open_blocking_host():
        raise ZeroDivisionError


def test_a_host_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    with (
        pytest.raises(Exception, match="data"),
        perdure.open_blocking(str(tmp_path), data_dir=str(tmp_path / "data")),
    ):
        raise AssertionError


async def test_inside_a_running_loop_it_refuses(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="running event loop"),
        perdure.open_blocking(str(tmp_path), data_dir=str(tmp_path / "data")),
    ):
        raise AssertionError
