"""A crash site: the directory that outlives every process, and what lies in it."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MEMORY: Final = "/dev/shm"
_LOG_INDEX: Final = "-shm"
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


@contextmanager
def new_root() -> Generator[Path]:
    """Where a site can be made."""
    # A killed process loses nothing that it wrote, to a disk or to memory; memory is quicker.
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-crash-", dir=memory) as folder:
        yield Path(folder) / "site"


@contextmanager
def new_site() -> Generator[CrashSite]:
    with new_root() as root:
        site = CrashSite(root)
        site.prepare()
        yield site


def contents(root: Path) -> dict[str, bytes]:
    """All that a next life would find: every file by its name, and every directory.

    But for the index of the write-ahead log: whoever opens a database that nobody has open makes
    that one anew.
    """
    found: dict[str, bytes] = {}
    for folder, _, names in os.walk(root):
        found[folder] = b""
        for name in names:
            if not name.endswith(_LOG_INDEX):
                path = Path(folder, name)
                found[str(path)] = path.read_bytes()
    return found


@contextmanager
def in_its_place(root: Path) -> Generator[None]:
    """In the scope there is a copy in the place of `root`, and afterwards `root` as it was.

    A log names files by their path, so a copy must lie where the original lay. Who has files of the
    original open keeps them. Nobody holds a lock on the copy: that is how a death leaves things.
    """
    with tempfile.TemporaryDirectory(dir=root.parent) as aside:
        kept = Path(aside) / root.name
        root.rename(kept)
        shutil.copytree(kept, root)
        try:
            yield
        finally:
            shutil.rmtree(root)
            kept.rename(root)
