"""A server is there at once: what starting it loads, and what stopping it takes."""

import asyncio
import os
import signal
import subprocess
import sys

from perdure.server.serve import serve
from tests.contract.server.fake_runtime import PATIENCE_SECONDS, Stage, call, settings

HEAVY = {"httpx2", "email", "http.client", "http.server", "urllib.request", "uvicorn", "apsw"}


def test_loading_the_server_loads_nothing_heavy() -> None:
    script = "import sys, perdure.server.serve; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert HEAVY.isdisjoint(run.stdout.split())


async def test_a_server_on_any_free_port_answers_and_stops_on_a_signal() -> None:
    listens = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(serve(Stage().services(), settings(), ready=listens.set_result))
        port = await listens
        assert (await call(port, "GET", "/api/health")).status == 200
        os.kill(os.getpid(), signal.SIGTERM)


async def test_stopping_twice_and_serving_again_in_one_process_works() -> None:
    for _ in range(2):
        stop = asyncio.Event()
        stop.set()
        ports: list[int] = []
        await serve(Stage().services(), settings(), ready=ports.append, stop=stop)
        assert ports[0] > 0
