"""A Session at a Location that has every kind of file that a model is told of."""

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from perdure.core.context import system_context
from perdure.core.context.system_context import Generation, Snapshot
from perdure.location import factory
from perdure.location.context.registry import Subject
from perdure.location.factory import SharedServices
from perdure.location.location import Location
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders
from tests.fixtures import SESSION

READ_FILES: Final = (
    "home/.config/opencode/AGENTS.md",
    "home/.config/opencode/opencode.json",
    "home/.config/opencode/skills/mine.md",
    "home/.config/opencode/agents/mine.md",
    "home/key.txt",
    "project/AGENTS.md",
    "project/opencode.json",
    "project/.opencode/opencode.jsonc",
    "project/.opencode/agent/deep/theirs.md",
    "project/.opencode/skill/deep/SKILL.md",
    "project/inner/AGENTS.md",
    "project/docs/rule.md",
    "project/rules/a.md",
    "project/tree/deep/b.md",
    "project/.git/HEAD",
    "project/.git/config",
)
READ_DIRECTORIES: Final = (
    "home/.config/opencode",
    "home/.config/opencode/skills",
    "home/.config/opencode/agents",
    "home/.local/share/perdure/repos/github.com/ada/notes",
    "project/.opencode",
    "project/.opencode/agent",
    "project/.opencode/agent/deep",
    "project/.opencode/skill",
    "project/.opencode/skill/deep",
    "project/inner",
    "project/docs",
    "project/rules",
    "project/tree",
    "project/tree/deep",
    "project/.git",
)


def furnish(folders: LocationFolders) -> None:
    """Write every kind of file that the model is told of, or that settings are read from."""
    home, project = folders.home, folders.project
    user = home / ".config" / "opencode"
    described = "---\ndescription: Use it.\n---\nText."
    agent = "---\ndescription: Call it.\nmode: subagent\n---\nText."
    folders.write(home / "key.txt", "docs/rule.md")
    folders.write(user / "AGENTS.md", "Mine.")
    folders.configure_user(
        {
            "model": "p/m",
            "permissions": [{"action": "bash", "resource": "*", "effect": "deny"}],
            "references": {"shelf": {"path": "/srv", "description": "Shelf."}},
        }
    )
    folders.write(user / "skills" / "mine.md", described)
    folders.write(user / "agents" / "mine.md", agent)
    folders.write(project / "AGENTS.md", "Theirs.")
    folders.write(project / "inner" / "AGENTS.md", "Inner.")
    folders.configure(
        {
            "instructions": ["docs/rule.md", "rules/*.md", "tree/**/*.md"],
            "references": {"notes": {"repository": "ada/notes", "description": "Notes."}},
        }
    )
    folders.write(
        project / ".opencode" / "opencode.jsonc",
        {"agents": {"third": {"mode": "subagent", "description": "Third."}}},
    )
    folders.write(project / ".opencode" / "agent" / "deep" / "theirs.md", agent)
    folders.write(
        project / ".opencode" / "skill" / "deep" / "SKILL.md",
        "---\nname: deep\ndescription: Deep.\n---\nText.",
    )
    folders.write(project / "docs" / "rule.md", "Rule.")
    folders.write(project / "rules" / "a.md", "A.")
    folders.write(project / "tree" / "deep" / "b.md", "B.")
    folders.git("init", "--quiet")
    folders.git("remote", "add", "origin", "https://example.org/ada/project.git")
    Path(folders.environment.data_dir, "repos/github.com/ada/notes").mkdir(parents=True)
    folders.variables["OPENCODE_CONFIG_CONTENT"] = '{"instructions": ["{file:~/key.txt}"]}'


def extend(folders: LocationFolders) -> None:
    """Change every kind of file, so that there is more to tell."""
    home, project = folders.home / ".config" / "opencode", folders.project
    skill = "---\ndescription: More.\n---\nText."
    agent = "---\ndescription: More.\nmode: subagent\n---\nText."
    for path in (home, project, project / "inner"):
        folders.write(path / "AGENTS.md", "More here.")
    for path in (project / "docs" / "rule.md", project / "rules" / "a.md"):
        folders.write(path, "More rules.")
    folders.write(project / "tree" / "deep" / "b.md", "More of B.")
    folders.write(home / "skills" / "mine.md", skill)
    folders.write(home / "agents" / "mine.md", agent)
    folders.write(project / ".opencode" / "agent" / "deep" / "theirs.md", agent)
    folders.write(
        project / ".opencode" / "skill" / "deep" / "SKILL.md",
        "---\nname: deep\ndescription: More.\n---\nText.",
    )
    folders.write(
        project / ".opencode" / "opencode.jsonc",
        {"agents": {"third": {"mode": "subagent", "description": "More."}}},
    )


class ToldSession:
    """A Session at a Location, and what its model has been told."""

    def __init__(self, folders: LocationFolders) -> None:
        self._folders = folders
        self._shared: SharedServices = folders.host()
        self._location = factory.open_location(folders.ref, self._shared)
        self.snapshot: Snapshot = {}

    async def begin(self) -> Generation:
        first = system_context.initialize(await self._observe())
        assert isinstance(first, Generation)
        self.snapshot = first.snapshot
        return first

    async def changes(self) -> system_context.Reconciled:
        self._location = factory.refresh_location(self._location, self._shared)
        return system_context.reconcile(await self._observe(), self.snapshot)

    def restarted(self) -> "ToldSession":
        """The same Session in a process that was just started."""
        again = ToldSession(self._folders)
        again.snapshot = self.snapshot
        return again

    def settings(self) -> tuple[object, ...]:
        """What the configuration decides for the next turn."""
        settings, agents = self._location.settings, self._location.agents
        return settings.permissions, settings.model, settings.recovery, agents.list()

    @property
    def location(self) -> Location:
        return self._location

    async def _observe(self) -> system_context.Observation:
        location = self._location
        subject = Subject(
            session_id=SESSION,
            agent=location.agents.get("build"),
            model=ModelRef(id="m", provider_id="p"),
            discovered=(str(self._folders.project / "inner" / "AGENTS.md"),),
            admitted=frozenset(self.snapshot),
        )
        return await replace(location, delegates=True).observe(subject)
