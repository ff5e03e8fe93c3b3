"""A Session whose budget is used up stops where everyone can see it, until a person raises it."""

from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
# Of the scripted model: one dollar for a million tokens in, ten for a million out.
PRICE = 0.002


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"cost": PRICE}, "`cost` of the `budget`"),
        ({"tokens": 1_100}, "`tokens` of the `budget`"),
        ({"turns": 1}, "`turns` of the `budget`"),
    ],
    ids=["cost", "tokens", "turns"],
)
async def test_a_run_stops_at_its_budget_and_goes_on_when_it_is_raised(
    tmp_path: Path, provider: ScriptedProvider, bounds: JsonObject, told: str
) -> None:
    folders = make_folders(tmp_path, provider, experimental={"budget": bounds})
    provider.then(calls(Call("glob", {"pattern": "*"}), usage=USAGE))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        *_, failed = await api.ask(session, "work without end")
        assert failed["finish"] == "error"
        assert told in failed["error"]["message"]
        assert len(provider.requests) == 1
        assert (await api.session(session))["cost"] == pytest.approx(PRICE)
        *_, again = await api.ask(session, "go on")
        assert told in again["error"]["message"]
        assert len(provider.requests) == 1
    raised = {kind: bound * 10 for kind, bound in bounds.items()}
    configuration = folders.project / "opencode.json"
    replaced = configuration.read_text().replace(_json(bounds), _json(raised))
    configuration.write_text(replaced)
    async with running(folders) as instance:
        provider.then(text("done"))
        *_, answer = await instance.api.ask(session, "and now")
        assert answer["content"][0]["text"] == "done"


async def test_an_agent_may_have_a_budget_of_its_own(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    anything = {"action": "*", "resource": "*", "effect": "allow"}
    frugal = {"budget": {"turns": 1}, "permissions": [anything]}
    folders = make_folders(tmp_path, provider, agents={"frugal": frugal})
    async with running(folders) as instance:
        api = instance.api
        bound, free = await api.create(agent="frugal"), await api.create(agent="build")
        for session in (bound, free):
            await api.ask(session, "once")
        assert "`turns` of the `budget`" in (await api.ask(bound, "twice"))[-1]["error"]["message"]
        assert (await api.ask(free, "twice"))[-1]["finish"] == "stop"


def _json(bounds: JsonObject) -> str:
    ((kind, bound),) = bounds.items()
    return f'"budget":{{"{kind}":{bound}}}'
