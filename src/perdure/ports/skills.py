"""Port for looking up skills. Implemented by location.skills.context_source."""

from typing import Protocol

from perdure.schema.settings.skill import SkillInfo


class SkillLookup(Protocol):
    def get(self, name: str) -> SkillInfo | None:
        """Return the skill of that name, as it is now."""
        ...

    def names_for(self, agent: str) -> tuple[str, ...]:
        """Return the names of the skills that the agent may use."""
        ...
