"""The `sessions.revert` group, over a socket and in memory."""

from pathlib import Path

import pytest

from perdure.client import WireError
from tests.contract.client.hosts import DEMO, OpenClient, in_memory, over_network


@pytest.mark.parametrize("host", [over_network, in_memory])
async def test_a_revert_is_staged_cleared_and_committed(host: OpenClient, tmp_path: Path) -> None:
    async with host(tmp_path) as client:
        session_id = (await client.sessions.create(model=DEMO))["id"]
        for said in ("hello", "hello again"):
            await client.sessions.prompt(session_id, text=said)
            await client.sessions.wait(session_id)
        messages = (await client.sessions.messages(session_id, order="asc")).items
        revert, boundary = client.sessions.revert, messages[0]["id"]
        assert await revert.stage(session_id, boundary) == {"messageID": boundary}
        await revert.clear(session_id)
        await revert.commit(session_id)
        assert (await client.sessions.messages(session_id, order="asc")).items == messages
        await revert.stage(session_id, boundary, files=False)
        await revert.commit(session_id)
        assert (await client.sessions.messages(session_id)).items == messages[:1]
        with pytest.raises(WireError) as refused:
            await revert.stage(session_id, messages[1]["id"])
        assert (refused.value.status, refused.value.tag) == (404, "MessageNotFoundError")
