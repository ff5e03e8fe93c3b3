"""32 clients do everything at once while servers are killed and stopped: every promise is kept.

`PERDURE_LOAD_SECONDS` makes it longer, `PERDURE_LOAD_SEED` draws another load.
"""

import asyncio
import os
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perdure.schema import codec
from tests.figures import Figure
from tests.load import model, rest, verdict
from tests.load.clients import Client, Promises
from tests.load.fleet import Fleet
from tests.load.model import PromptedModel
from tests.requirements import requirement
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

CLIENTS: Final = 32
SECONDS: Final = float(os.environ.get("PERDURE_LOAD_SECONDS", "6"))
SEED: Final = int(os.environ.get("PERDURE_LOAD_SEED", "1"))
REST_SECONDS_MAX: Final = 60 + SECONDS
SESSIONS: Final = 12
FAULTS_SHOWN_MAX: Final = 20


@requirement("S69", "S70", "S74", "S147", "S189")
@pytest.mark.timeout(SECONDS + REST_SECONDS_MAX + 120)
@pytest.mark.parametrize("processes", [1, 3])
async def test_every_promise_is_kept_under_a_mixed_load(
    tmp_path: Path, processes: int, figure: Figure
) -> None:
    effects = tmp_path / "project" / "effects.txt"
    async with scripted_provider() as provider:
        provider.otherwise, provider.keeps_requests = PromptedModel(effects).answer, False
        fleet = Fleet(configure(tmp_path, provider), Random(SEED), processes)
        promises = Promises()
        try:
            await load(fleet, promises)
            busy = await rest.come_to_rest(fleet, promises, seconds_max=REST_SECONDS_MAX)
            seen = await verdict.look(fleet)
        finally:
            await fleet.stop()
    faults = [*fleet.trouble, *busy, *verdict.find_faults(seen, promises, effects)]
    faults += [f"{log.name}: {text}" for log in fleet.logs if "Traceback" in (text := read(log))]
    shown = "\n".join(faults[:FAULTS_SHOWN_MAX])
    assert not faults, f"{len(faults)} faults, seed {SEED}:\n{shown}"
    assert len(promises.receipts) > SECONDS * 2
    assert effects.exists()
    figure("prompts under mixed load", len(promises.receipts))
    figure("operations under mixed load", promises.operations)
    figure("approvals under mixed load", len(promises.approvals))
    figure("servers ended under mixed load", fleet.signals.total())
    figure("seconds of mixed load", round(SECONDS))


async def load(fleet: Fleet, promises: Promises) -> None:
    await fleet.start()
    for _ in range(SESSIONS):
        answer = await fleet.call("POST", "/api/session", {}, patient=True)
        assert answer is not None
        promises.sessions.append(answer.json["data"]["id"])
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            chance = Random(f"{SEED} {number}")
            group.create_task(Client(fleet, promises, chance).live(over))
        group.create_task(fleet.disturb(over))
        await asyncio.sleep(SECONDS)
        over.set()


def configure(root: Path, provider: ScriptedProvider) -> ProjectFolders:
    """Everything is allowed but some commands; what may have been sent waits for a person."""
    anything = {"action": "*", "resource": "*", "effect": "allow"}
    asked = {"action": "bash", "resource": f"{model.ASKED}*", "effect": "ask"}
    folders = make_folders(root, provider, permissions=[anything, asked])
    path = Path(folders.variables["HOME"]) / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(codec.encode({"experimental": {"recovery": "ask"}}))
    return folders


def read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2_000:]
