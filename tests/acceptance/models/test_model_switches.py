"""One conversation through every wire protocol: no provider refuses what another one said."""

import itertools
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.acceptance.dialects import DIALECTS
from tests.requirements import requirement
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

ORDERS = (tuple(DIALECTS), tuple(reversed(tuple(DIALECTS))))


@requirement("S59", "S161")
@pytest.mark.parametrize("order", ORDERS, ids=("forwards", "backwards"))
async def test_a_conversation_goes_through_every_protocol(
    order: tuple[str, ...], tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(scripted_provider()) for name in order}
        entries = {name: DIALECTS[name].entry(servers[name]) for name in order}
        folders = make_folders(tmp_path, provider, providers=entries)
        api = (await stack.enter_async_context(running(folders))).api
        session = await api.create()
        # Twice: each comes back to what it said itself among what the others said.
        for number, name in enumerate(itertools.chain(order, order)):
            speaks = DIALECTS[name]
            answer = await api.call(
                "POST", f"/api/session/{session}/model", {"model": speaks.model}
            )
            assert answer.status == 204, answer.body
            call = speaks.asks(f"call_{number}", "bash", {"command": f"echo seen-{number}"})
            servers[name].then(call, speaks.says(f"It said {number}."))
            *_, last = await api.ask(session, f"turn {number}")
            assert last["finish"] == "stop", last
            for request in servers[name].requests[-2:]:
                assert speaks.faults(request) == []
            told = servers[name].requests[-1].raw
            for earlier in range(number + 1):
                assert f"turn {earlier}".encode() in told
                assert f"seen-{earlier}".encode() in told
        assert [len(server.requests) for server in servers.values()] == [4] * len(order)
