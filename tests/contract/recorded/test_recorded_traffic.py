"""Recorded traffic of the published server, made again here: statuses, shapes and orders.

The recordings are kept as shapes (`scripts/recorded_shapes.py` writes them). Requests are sent in
their order to a real server; ids that it made stand for those that were recorded. Where we answer
differently there is a reason in `deviations.py`, and every reason is still needed.
"""

import json
import re
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from perdure.core import jsonc
from perdure.schema.codec import JsonObject
from tests.contract.recorded.deviations import EXCHANGES, FILES, RUNS
from tests.contract.recorded.replay import Replay
from tests.requirements import requirement
from tests.support.instance import Instance, running
from tests.support.place import make_place
from tests.support.scripted_provider import (
    Call,
    Reply,
    ScriptedProvider,
    calls,
    cut,
    refusal,
    scripted_provider,
    text,
)

FOLDER: Final = Path(__file__).parent
EVERYTHING: Final = [{"action": "*", "resource": "*", "effect": "allow"}]
SCRIPTS: Final[dict[str, tuple[Reply, ...]]] = {
    "default_model": (text("hello"),),
    "bash": (calls(Call("bash", {"command": "echo hi"})), text("done")),
    "bigbash": (calls(Call("bash", {"command": "seq 5000"})), text("done")),
    "read": (calls(Call("read", {"path": "hello.txt"}), saying="look"), text("done")),
    "write": (calls(Call("write", {"path": "new.txt", "content": "x"})), text("done")),
    "todo": (calls(Call("todowrite", {"todos": []})), text("done")),
    "missing": (calls(Call("read", {"path": "nothing.txt"})), text("done")),
    "badinput": (calls(Call("read", {"path": 3})), text("done")),
    "unknowntool": (calls(Call("nonsense", {})), text("done")),
    "junkjson": (calls(Call("read", '{"path": ')), text("done")),
    "multi": (
        calls(Call("read", {"path": "nothing.txt"}), Call("read", {"path": "hello.txt"})),
        text("done"),
    ),
    "empty": (text(),),
    "length": (text("cut off", finish="length"),),
    "drop": (cut("half"),),
    "http401": (refusal(401, {"error": {"message": "no"}}),),
    "httpfail": (refusal(400, {"error": {"message": "bad"}}),),
    "unknown_agent": (text("hello"),),
    "unknown_model": (),
    "unknown_variant": (),
}
"""What the model answers in each run that is made again."""

CHOSEN: Final[dict[str, JsonObject]] = {
    "unknown_agent": {"agent": "nobody"},
    "unknown_model": {"model": {"providerID": "fake", "id": "none"}},
    "unknown_variant": {"model": {"providerID": "fake", "id": "fake-model", "variant": "none"}},
}
"""What the Sessions of some of them were made with."""


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@asynccontextmanager
async def serving(
    root: Path, provider: ScriptedProvider, **settings: object
) -> AsyncGenerator[Instance]:
    """A server on two repositories with a few files, as the recorded one had."""
    place = make_place(root, provider, **settings)
    _furnish(place.project)
    async with running(place) as opened:
        yield opened


def _furnish(project: Path) -> None:
    for folder, file in (("", "hello.txt"), ("sub", "inner.txt"), ("../project2", "two.txt")):
        (project / folder).mkdir(exist_ok=True)
        (project / folder / file).write_text("hello\n", encoding="utf-8")
    for repository in (project, project.parent / "project2"):
        subprocess.run(["git", "init", "-q", str(repository)], check=True)


@requirement("S117")
@pytest.mark.parametrize("name", FILES)
async def test_answers_have_the_recorded_status_and_shape(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with serving(tmp_path, provider) as instance:
        replay = Replay(instance)
        found = [
            f"{name}: {recorded['name']}: {difference}"
            for recorded in _recorded(name)
            for difference in await replay.differences(recorded)
        ]
    assert [line for line in found if not _reasons(line)] == []
    used = {pattern for line in found for pattern in _reasons(line)}
    mine = {pattern for pattern in EXCHANGES if pattern.startswith(f"{name}:")}
    assert mine - used == set()


@requirement("S117")
@pytest.mark.parametrize("name", sorted(SCRIPTS))
async def test_a_run_leaves_its_events_in_the_recorded_order(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    provider.then(*SCRIPTS[name])
    async with serving(tmp_path, provider, permissions=EVERYTHING) as instance:
        api = instance.api
        session = await api.create(**CHOSEN.get(name, {}))
        await api.prompt(session, "go on")
        await api.wait(session)
        history: list[JsonObject] = (await api.get(f"/api/session/{session}/history"))["data"]
    ours = [event["type"].removeprefix("session.next.") for event in history]
    recorded: list[str] = json.loads((FOLDER / "runs.json").read_text(encoding="utf-8"))[name]
    if name in RUNS:
        assert ours == list(RUNS[name].ours)
        assert ours != recorded
    else:
        assert ours == recorded


def test_a_difference_is_seen() -> None:
    shape = {"id": "<ses1>", "list": [{"a": {"type": "string", "n": "number"}}], "opt?": "string"}
    assert Replay.compared(shape, {"id": "ses_x", "list": [{"type": "a", "n": 1}]}) == []
    ours = {"list": [{"type": "a", "n": "1"}, {"type": "b"}], "more": 1}
    assert Replay.compared(shape, ours) == [
        ".id is missing",
        ".more is new",
        ".list[a].n: string instead of number",
        ".list[b] is new",
    ]


def _recorded(name: str) -> list[JsonObject]:
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert jsonc.is_list(found)
    return found


def _reasons(line: str) -> list[str]:
    return [pattern for pattern in EXCHANGES if re.fullmatch(pattern, line)]
