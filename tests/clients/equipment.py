"""The published clients: installed once for each checkout, below `.cache`, as the lock file says.

`package-lock.json` has the checksum of every package. Where they cannot be installed there is
nothing to run (tests.skipping).
"""

import fcntl
import hashlib
import platform
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.skipping import cannot_run, is_not_for
from tests.support import node
from tests.support.node import CACHE

OPENCODE_VERSION: Final = "1.18.33"
INSTALL_SECONDS_MAX: Final = 110
# The package of npm's `opencode-ai` that holds the program for this kind of machine.
_PROGRAM: Final = "opencode-linux-x64-baseline"
_HERE: Final = Path(__file__).parent
_LOCK: Final = _HERE / "package-lock.json"


class Equipment:
    """Where the installed clients are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opencode = folder / "node_modules" / _PROGRAM / "bin" / "opencode"
        self.browser_folder = folder / "browser"

    @property
    def browser(self) -> Path:
        return self.browser_folder / "chromium"


async def install() -> Equipment:
    """Install the clients, unless this checkout has them; other test processes wait meanwhile."""
    machine = (sys.platform, platform.machine())
    if machine != ("linux", "x86_64"):
        # Also where nothing may be skipped: elsewhere there is nothing to install.
        is_not_for(f"the published program is run on Linux x64 only; this is {' '.join(machine)}")
    version = hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = await node.installed(
            f"clients-{version}", "ci", prepare=_prepare, seconds_max=INSTALL_SECONDS_MAX
        )
        equipment = Equipment(found)
        if not equipment.browser.exists():
            await _unpack_browser(equipment)
    return equipment


def _prepare(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, folder)


async def _unpack_browser(equipment: Equipment) -> None:
    equipment.browser_folder.mkdir(exist_ok=True)
    script = str(_HERE / "unpack_browser.mjs")
    code, output = await node.run(
        *(node.node(), script, str(equipment.folder)),
        environment=node.USERS | {"TMPDIR": str(equipment.browser_folder)},
    )
    if code != 0:
        cannot_run(f"the browser cannot be unpacked on this machine: {output[-200:]}")
