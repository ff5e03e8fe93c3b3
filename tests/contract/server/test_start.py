"""Starting a server: what it loads, what stops it, and that it refuses handlers that do not fit."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from perdure.protocol import health
from perdure.protocol.health import Health
from perdure.protocol.session.session import PromptSession, SwitchAgent
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.server.app import HANDLERS, make_app
from perdure.server.binding import HandlerTypeError
from perdure.server.call import Call, Handlers
from perdure.server.results import Encoded, EncodedPage
from perdure.server.serve import serve
from tests.contract.server.served_runtime import Backend
from tests.support.raw_http import PATIENCE_SECONDS, call

HEAVY = {"httpx2", "email", "http.client", "http.server", "urllib.request", "uvicorn", "apsw"}


def test_loading_the_server_loads_nothing_heavy() -> None:
    script = "import sys, perdure.server.serve; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    loaded = set(run.stdout.split())
    assert HEAVY.isdisjoint(loaded)
    assert not any(name.startswith(("perdure.runtime.", "perdure.location.")) for name in loaded)


async def test_a_server_on_any_free_port_answers_and_stops_on_a_signal(backend: Backend) -> None:
    listens = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(serve(backend.runtime, backend.settings(), ready=listens.set_result))
        port = await listens
        assert (await call(port, "GET", "/api/health")).status == 200
        os.kill(os.getpid(), signal.SIGTERM)


async def test_stopping_twice_and_serving_again_in_one_process_works(backend: Backend) -> None:
    for _ in range(2):
        stop = asyncio.Event()
        stop.set()
        ports: list[int] = []
        await serve(backend.runtime, backend.settings(), ready=ports.append, stop=stop)
        assert ports[0] > 0


async def test_the_app_is_not_made_with_a_handler_missing_or_left_over(backend: Backend) -> None:
    fewer = {name: handler for name, handler in HANDLERS.items() if name != "v2.health.get"}
    more = {**HANDLERS, "v2.health.nope": HANDLERS["v2.health.get"]}
    for handlers in (fewer, more):
        with pytest.raises(ValueError, match=r"v2\.health"):
            make_app(backend.runtime, backend.settings(), handlers)


async def takes_another_body(call: Call[None, SwitchAgent]) -> AdmittedPrompt:
    raise AssertionError("an app with this handler is never made")


async def takes_a_query(call: Call[SwitchAgent, PromptSession]) -> AdmittedPrompt:
    raise AssertionError("an app with this handler is never made")


async def returns_another_value(call: Call[None, PromptSession]) -> SessionInfo:
    raise AssertionError("an app with this handler is never made")


async def returns_a_page(call: Call[None, PromptSession]) -> EncodedPage[AdmittedPrompt]:
    raise AssertionError("an app with this handler is never made")


async def returns_json_of_another_value(call: Call[None, PromptSession]) -> Encoded[SessionInfo]:
    raise AssertionError("an app with this handler is never made")


async def returns_nothing(call: Call[None, PromptSession]) -> None:
    raise AssertionError("an app with this handler is never made")


async def takes_more_than_a_call(call: Call[None, PromptSession], extra: int = 0) -> AdmittedPrompt:
    raise AssertionError("an app with this handler is never made")


@pytest.mark.parametrize(
    ("handlers", "problem"),
    [
        (
            {"v2.session.prompt": takes_another_body},
            "takes the body SwitchAgent; the Endpoint declares PromptSession",
        ),
        (
            {"v2.session.prompt": takes_a_query},
            "takes the query SwitchAgent; the Endpoint declares None",
        ),
        (
            {"v2.session.prompt": returns_another_value},
            "returns SessionInfo; the Endpoint declares data of AdmittedPrompt",
        ),
        ({"v2.session.prompt": returns_a_page}, "returns .*EncodedPage.*AdmittedPrompt"),
        ({"v2.session.prompt": returns_json_of_another_value}, "returns .*Encoded.*SessionInfo"),
        (
            {"v2.session.prompt": returns_nothing},
            "returns None; the Endpoint declares data of AdmittedPrompt",
        ),
        (
            {"v2.session.prompt": takes_more_than_a_call},
            r"must be annotated \(Call\[query, body\]\) -> result",
        ),
    ],
)
async def test_the_app_is_not_made_with_a_handler_of_other_types(
    backend: Backend, handlers: Handlers, problem: str
) -> None:
    ((name, handler),) = handlers.items()
    with pytest.raises(HandlerTypeError, match=problem) as raised:
        make_app(backend.runtime, backend.settings(), {**HANDLERS, name: handler})
    assert f"{handler.__module__}.{handler.__qualname__} of {name} " in str(raised.value)


async def test_json_that_is_encoded_already_fits_where_its_value_does(backend: Backend) -> None:
    async def encoded(call: Call[None, None]) -> Encoded[Health]:
        return Encoded(b'{"healthy":true}')

    handlers: Handlers = {**HANDLERS, health.GET.operation_id: encoded}
    async with backend.port(handlers=handlers) as port:
        assert (await call(port, "GET", "/api/health")).body == b'{"healthy":true}'
