"""A crash site: the directory that outlives every process, and what lies in it."""

from pathlib import Path
from typing import Final

_RULES: Final = '{"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}'

# Nothing that may have been sent is sent again unless the person of the script says so.
_POLICY: Final = '{"experimental": {"recovery": "ask"}}'


class CrashSite:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        self.project = root / "project"
        self.database = self.data / "perdure.db"
        self.effects = root / "effects"
        """One line for each effect of a tool: the call that made it."""
        self.receipts = root / "receipts"
        """One line for each receipt that a client was given."""
        self.told = root / "told"
        """One line for each event that a listener heard of."""
        self.asked = root / "asked"
        """One line for each request that a model answered: what it was about."""
        self.decided = root / "decided"
        """One line for each request that a person wanted sent again."""

    def prepare(self) -> None:
        self.data.mkdir(parents=True)
        self.project.mkdir()
        (self.project / "opencode.json").write_text(_RULES)
        users = self.root / ".config" / "opencode"
        users.mkdir(parents=True)
        (users / "opencode.json").write_text(_POLICY)
        for file in (self.effects, self.receipts, self.told, self.asked, self.decided):
            file.touch()
