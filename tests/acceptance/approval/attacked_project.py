"""A project of a user who has secrets, and what nothing in the sandbox may change."""

import subprocess
from pathlib import Path
from typing import Final

from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider

TOKEN: Final = "canary-6029"
"""What is in each secret."""
SECRETS: Final = (
    *(".ssh/id_ed25519", ".claude/.credentials.json", ".codex/auth.json", ".bash_history"),
    *(".config/gh/hosts.yml", ".authinfo", ".config/containers/auth.json", ".m2/settings.xml"),
)


def make(root: Path, provider: ScriptedProvider, **settings: object) -> ProjectFolders:
    made = make_folders(root, provider, **settings)
    made.configure_user(username=TOKEN)
    made.variables["OPENCODE_SERVER_PASSWORD"] = TOKEN
    made.variables["ANTHROPIC_API_KEY"] = TOKEN
    (root / "out").mkdir()
    (root / "out" / "kept").write_text("kept\n")
    for name in SECRETS:
        path = root / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOKEN)
    project = made.project
    (project / "mine").write_text("mine\n")
    (project / ".opencode" / "command").mkdir(parents=True)
    (project / ".opencode" / "command" / "own.md").write_text("own\n")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(project))
    subprocess.run((*git, "init", "-q"), check=True)
    subprocess.run((*git, "add", "."), check=True)
    subprocess.run((*git, "commit", "-qm", "x"), check=True)
    return made


def protected(root: Path) -> dict[str, tuple[int, bytes]]:
    """What nothing may change: mode and content by path."""
    places = ("out", "home", "config", "project/.git/hooks", "project/.git/config")
    found: dict[str, tuple[int, bytes]] = {}
    for place in (*places, "project/opencode.json", "project/.opencode"):
        base = root / place
        for path in (base, *sorted(base.rglob("*"))) if base.exists() else ():
            status = path.lstat()
            found[str(path)] = (status.st_mode, path.read_bytes() if path.is_file() else b"")
    return found
