"""Context Source of the skills: name and description of each that the agent may use.

Texts and paths of skills come only through the skill tool, which asks for permission. Skills
without a description can be loaded by name and are not listed.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import UNSET

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Rules
from perdure.core.context import system_context
from perdure.core.context.system_context import UNAVAILABLE, ContextSource, Observation
from perdure.core.skills import skill
from perdure.core.text import xml_tags
from perdure.location.skills.skills import ACTION, Skills
from perdure.schema.approval.permission import Effect
from perdure.schema.codec import Record
from perdure.schema.settings.skill import SkillInfo

KEY: Final = "core/skill-guidance"


class SkillSummary(Record, frozen=True):
    name: str
    description: str


SkillSummaries = tuple[SkillSummary, ...]


def _rendered(summaries: SkillSummaries) -> str:
    intro = (
        "Skills are instructions that were written for particular kinds of tasks.\n"
        "When a task fits the description of a skill, load it with the `skill` tool first."
    )
    if not summaries:
        return f"{intro}\nNo skills are available."
    listed = ({"name": one.name, "description": one.description} for one in summaries)
    return f"{intro}\n{xml_tags.list_available('skill', listed)}"


SKILLS: ContextSource[SkillSummaries] = ContextSource(
    key=KEY,
    type=SkillSummaries,
    baseline=_rendered,
    update=lambda previous, current: (
        "The available skills have changed. This list supersedes the earlier one.\n"
        + _rendered(current)
    ),
    removed=lambda previous: (
        "Skills are not available any more. The list given before no longer applies."
    ),
)


def observe(
    skills: Skills,
    rules: Rules | None,
    *,
    listed_before: bool = False,
    reading: Callable[[str], Effect] = permission.allow_all,
) -> Observation:
    """Observe the skills of the agent with these rules; empty when it may not use any.

    `listed_before`: the model has a list already, which stays while a source cannot be read.
    `reading`: what rules say to reading a canonical path; the description is from the file.
    """
    if rules is None:
        return ()
    usable = [found for found in skills.permitted(rules) if reading(_real_path(found)) == "allow"]
    if listed_before and not skills.is_known:
        return (system_context.make(SKILLS, UNAVAILABLE),)
    if not usable and permission.evaluate(rules, ACTION, "*") == "deny":
        return ()
    return (system_context.make(SKILLS, tuple(_summaries(usable))),)


def _real_path(found: SkillInfo) -> str:
    # A built-in skill is no file.
    is_file = not found.location.startswith(f"{skill.BUILT_IN_DIRECTORY}/")
    return os.path.realpath(found.location) if is_file else found.location


class AgentSkills:
    """Implements the skill tool's SkillLookup."""

    def __init__(self, skills: Skills, rules: Callable[[str], Rules]) -> None:
        self._skills = skills
        self._rules = rules

    def get(self, name: str) -> SkillInfo | None:
        return self._skills.get(name)

    def names_for(self, agent: str) -> tuple[str, ...]:
        return tuple(found.name for found in self._skills.permitted(self._rules(agent)))


def _summaries(usable: Sequence[SkillInfo]) -> list[SkillSummary]:
    return [
        SkillSummary(found.name, xml_tags.one_line(found.description))
        for found in usable
        if found.description is not UNSET
    ]
