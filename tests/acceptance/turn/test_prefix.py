"""What a provider keeps of a request is good for the next one: in each protocol, byte for byte."""

import itertools
import os
from pathlib import Path

import pytest

from tests.acceptance.dialects import DIALECTS, Dialect
from tests.figures import Figure
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider

TURNS = int(os.environ.get("PERDURE_TURNS", "8"))


async def one_turn(
    number: int,
    api: Api,
    session: str,
    *,
    folders: ProjectFolders,
    provider: ScriptedProvider,
    speaks: Dialect,
) -> None:
    """A prompt, a call and an answer, with something new in the context every other time."""
    if number % 2:
        (folders.project / "AGENTS.md").write_text(f"Rule {number}: leave no trace.\n")
    call = speaks.asks(f"call_{number}", "bash", {"command": f"echo {number}"})
    provider.then(call, speaks.says(f"It said {number}."))
    await api.ask(session, f"turn {number}")


@requirement("S54", "S55", "S56")
@pytest.mark.parametrize("name", DIALECTS)
async def test_each_request_begins_with_the_one_before(
    name: str, tmp_path: Path, provider: ScriptedProvider, figure: Figure
) -> None:
    speaks = DIALECTS[name]
    folders = make_folders(
        tmp_path,
        provider,
        providers={name: speaks.entry(provider)},
        model=f"{name}/{speaks.model_id}",
    )
    (folders.project / "AGENTS.md").write_text("Rule 0: leave no trace.\n")
    session = ""
    # Twice: what was told is kept over a restart to the byte.
    for half in (range(TURNS // 2), range(TURNS // 2, TURNS)):
        async with running(folders) as instance:
            session = session or await instance.api.create()
            for number in half:
                await one_turn(
                    number, instance.api, session, folders=folders, provider=provider, speaks=speaks
                )
    requests = provider.requests
    assert len(requests) == 2 * TURNS
    assert [fault for request in requests for fault in speaks.faults(request)] == []
    for before, after in itertools.pairwise(requests):
        assert speaks.begins(after) == speaks.begins(before)
        told = speaks.items(before)
        assert speaks.items(after)[: len(told)] == told
        assert len(speaks.items(after)) > len(told)
    updates = sum(b"Rule 7:" in item for item in speaks.items(requests[-1]))
    assert updates == 1
    figure("requests that begin with the one before", len(requests) - 1)
