"""The client without an event loop, and what importing any of them costs."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import perdure
from perdure.client import ClientError, WireError
from perdure.client.blocking_wire import BlockingWireClient
from perdure.client.generated.failures import is_conflict, is_session_not_found
from tests.contract.client.hosts import DEMO, PATIENCE_SECONDS, served
from tests.requirements import requirement

SOURCE = Path(perdure.__file__).parent.parent
ENGINE = ("core", "llm", "ports", "store", "tools", "host", "location", "runtime", "server")
MODULES_MORE_MAX = 40


def conversation(url: str) -> tuple[list[str], list[int]]:
    with BlockingWireClient(url) as client:
        session = client.sessions.create(model=DEMO)
        client.sessions.prompt(session["id"], text="hello")
        client.sessions.wait(session["id"])
        kinds = [message["type"] for message in client.sessions.messages(session["id"]).items]
        told = len(client.sessions.history(session["id"]).items)
        events = client.sessions.events(session["id"])
        seen = [next(events)["durable"]["seq"] for _ in range(told)]
        events.close()
        # The connection of an abandoned stream is free for the next call.
        assert client.sessions.get(session["id"])["id"] == session["id"]
        return kinds, seen


async def test_a_program_without_a_loop_holds_a_conversation(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), served(tmp_path) as url:
        kinds, seen = await asyncio.to_thread(conversation, url)
    assert kinds == ["assistant", "user"]
    assert seen == list(range(1, len(seen) + 1))


@requirement("S117")
async def test_a_guard_tells_failures_apart_by_their_value(tmp_path: Path) -> None:
    def ask(url: str) -> WireError:
        with BlockingWireClient(url) as client, pytest.raises(WireError) as caught:
            client.sessions.get("ses_missing")
        return caught.value

    async with served(tmp_path) as url:
        failure = await asyncio.to_thread(ask, url)
    assert is_session_not_found(failure.value)
    assert failure.value["sessionID"] == "ses_missing"
    assert not is_conflict(failure.value)
    assert not is_session_not_found(failure)
    assert not is_session_not_found(None)


def test_a_server_that_is_not_there_is_a_lost_transport() -> None:
    with BlockingWireClient("http://127.0.0.1:1") as client:
        with pytest.raises(ClientError) as caught:
            client.health.get()
        assert caught.value.reason == "transport"
        with pytest.raises(ClientError):
            next(client.events.subscribe())
    client.close()


async def test_inside_a_running_loop_it_refuses() -> None:
    client = BlockingWireClient("http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="running event loop"):
        client.health.get()
    await asyncio.to_thread(client.close)


def loaded_by(statement: str) -> set[str]:
    """What is in `sys.modules` after `statement`, in an interpreter of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(ran.stdout.split())


@requirement("S113", "S125", "S126", "S146")
@pytest.mark.parametrize(
    "module", ["client", "client.client", "client.blocking_client", "client.blocking_wire"]
)
def test_no_client_loads_the_engine(module: str) -> None:
    loaded = loaded_by(f"import perdure.{module}")
    assert loaded & {*(f"perdure.{name}" for name in ENGINE), "apsw", "sqlite3"} == set()
    assert "perdure.embedded" not in loaded


@requirement("S125")
def test_the_plain_client_loads_neither_the_contract_nor_the_typed_one() -> None:
    loaded = loaded_by("import perdure.client")
    assert not any(name.startswith("perdure.protocol") for name in loaded)
    assert loaded & {"perdure.client.client", "perdure.client.generated.types"} == set()


def test_the_client_loads_little_more_than_its_http_library() -> None:
    """How long that takes is measured by `python -m bench inside client_import`."""
    more = loaded_by("import perdure.client") - loaded_by("import httpx2")
    assert len(more) <= MODULES_MORE_MAX, sorted(more)


def test_a_stream_that_is_kept_beyond_its_client_ends_quietly() -> None:
    with BlockingWireClient("http://127.0.0.1:1") as client:
        events = client.events.subscribe()
    events.close()
    with pytest.raises(StopIteration):
        next(events)
