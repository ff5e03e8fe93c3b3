"""A crash site: the directory that the processes of a sweep use one after the other."""

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
        """One line for each event that a listener was told of."""
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
    """A path at which a site can be made."""
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
    """Every file and directory that the next process would find.

    The index of the write-ahead log is left out: the first process that opens a database makes it
    anew.
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
def copied_in_place(root: Path) -> Generator[None]:
    """Replace `root` by a copy of it within the scope.

    The log names files by their path, so the copy must be at the path of the original. A process
    that has files of the original open keeps them, and no process holds a lock on the copy: this
    is how a crash leaves files.
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
