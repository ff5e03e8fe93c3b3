"""Installs both servers below `.bench/`: the original from npm, Perdure as a wheel.

A wheel instead of the checkout, because only an installer compiles bytecode: an editable install
may compile every module at each start, which makes it twice as slow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench"
OPENCODE_VERSION = "1.18.33"


class InstallError(Exception):
    """A server cannot be installed here; the message says what is missing."""


def install_both() -> None:
    """Install what is missing and put both commands first on PATH for this process."""
    FOLDER.mkdir(exist_ok=True)
    found = [install_opencode(), install_perdure()]
    os.environ["PATH"] = os.pathsep.join([*map(str, found), os.environ["PATH"]])


def install_opencode() -> Path:
    folder = FOLDER / "opencode"
    commands = folder / "node_modules" / ".bin"
    if installed_version(commands / "opencode") == OPENCODE_VERSION:
        return commands
    for needed in ("node", "npm"):
        if shutil.which(needed) is None:
            raise InstallError(f"{needed} was not found: the real server is an npm package")
    folder.mkdir(exist_ok=True)
    package = f"opencode-ai@{OPENCODE_VERSION}"
    run("npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), package)
    # Whether npm runs install scripts depends on the machine's policy. This script only copies
    # the platform's binary, so it is always run here.
    run("node", str(folder / "node_modules" / "opencode-ai" / "postinstall.mjs"))
    if installed_version(commands / "opencode") != OPENCODE_VERSION:
        raise InstallError(f"{package} was installed and does not start")
    return commands


def install_perdure() -> Path:
    venv = FOLDER / "venv"
    python = venv / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if not (venv / "bin" / "perdure").exists():
        run(sys.executable, "-m", "venv", "--clear", str(venv))
        pins = FOLDER / "constraints.txt"
        pins.write_text(constraints((ROOT / "requirements-dev.lock").read_text()))
        run(*pip, "--constraint", str(pins), f"{ROOT}[all]")
    run(*pip, "--force-reinstall", "--no-deps", str(ROOT))
    return venv / "bin"


def constraints(lock: str) -> str:
    """Return the locked versions without hashes, which cannot cover a wheel that is built here."""
    return "\n".join(re.findall(r"^[a-z0-9_.-]+==[^ \\]+", lock, flags=re.MULTILINE)) + "\n"


def installed_version(command: Path) -> str | None:
    try:
        asked = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return asked.stdout.strip()


def run(*command: str) -> None:
    if subprocess.run(command, cwd=FOLDER, check=False).returncode:
        raise InstallError(f"failed: {' '.join(command)}")
