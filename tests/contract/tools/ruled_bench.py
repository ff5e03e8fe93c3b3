"""A ToolBench whose permissions are decided by rules, with no person to ask."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from perdure.location.approval.approvals import LocationApprovals
from perdure.location.approval.location_rules import LocationRules
from perdure.location.approval.permissions import LocationPermissions
from perdure.schema.approval.permission import Effect, Rule, Ruleset, SavedPlace
from perdure.schema.codec import JsonValue
from perdure.schema.ids import ProjectID
from perdure.testing import ManualClock, SeededIds
from perdure.tools.api.registry import Settled, ToolError, ToolSuccess
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.support.memory_saved_rules import MemorySavedRules

PLACE = SavedPlace(ProjectID("project"), "here", "/here")
ALLOW_ALL: Ruleset = (Rule("*", "*", "allow"),)

Verdict = Literal["allow", "ask", "deny", "other"]


def rules(*lines: str) -> Ruleset:
    """Rules after one that allows everything, written as `deny read secrets/*`."""
    return (*ALLOW_ALL, *map(_rule, lines))


def _rule(line: str) -> Rule:
    effect, action, resource = line.split(" ", 2)
    effects: Mapping[str, Effect] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    return Rule(action, resource, effects[effect])


def verdict(settled: Settled) -> Verdict:
    """How the rules decided on a call about one file."""
    if isinstance(settled, ToolSuccess):
        return "allow"
    if settled.message.startswith("Denied by the rule"):
        return "deny"
    return "ask" if "needs a person's approval" in settled.message else "other"


class RuledBench(ToolBench):
    def __init__(
        self,
        base: Path,
        agents: Mapping[str, Ruleset],
        *,
        users: Mapping[str, Ruleset] | None = None,
        given_root: Path | None = None,
        ripgrep: str | None = None,
    ) -> None:
        self.saved = MemorySavedRules(SeededIds())
        self.agents = dict(agents)
        self.users = dict(users or {})
        self.gate = LocationPermissions(
            rules=LocationRules(
                lambda agent: self.agents[agent],
                users=lambda agent: self.users.get(agent, ()),
                directory=str(given_root or base / "project"),
            ),
            approvals=LocationApprovals(self.saved, place=_find_place, clock=ManualClock()),
            ids=SeededIds(),
            publish=lambda event: None,
            headless="deny",
        )
        super().__init__(base, ripgrep=ripgrep, gate=self.gate)

    def as_agent(self, agent: str, *above: str) -> None:
        """Let the following calls come from this agent, called by the agents above it."""
        self.context = replace(self.context, agent=agent, above=above)

    async def verdict(self, name: str, /, **input: JsonValue) -> Verdict:
        return verdict(await self.call(name, **input))

    async def said(self, name: str, /, **input: JsonValue) -> str:
        """Everything that the model is told."""
        settled = await self.call(name, **input)
        if isinstance(settled, ToolError):
            return settled.message
        return text_of(settled) or str(settled.structured)


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


async def _find_place() -> SavedPlace:
    return PLACE
