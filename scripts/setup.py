"""Creates `.venv` with the locked packages, this project in editable form, and bytecode.

Uses `uv` when it is on PATH and pip otherwise; both install exactly `requirements-dev.lock`, whose
hashes they check. The configuration of the machine decides which package index is used.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements-dev.lock"


def main() -> int:
    uv = shutil.which("uv")
    if uv is None and importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        print(
            f"{sys.executable} cannot make a virtual environment: its venv module is incomplete.\n"
            f"On Debian and Ubuntu: apt install python{version}-venv. Or install uv, or choose\n"
            "another interpreter: make PYTHON=python3.12",
            file=sys.stderr,
        )
        return 1
    try:
        install(with_uv(uv) if uv else with_pip())
    except subprocess.CalledProcessError as failure:
        print(
            f"setup failed at: {' '.join(failure.cmd)}\n"
            "Fix the error above and run `make setup` again.",
            file=sys.stderr,
        )
        return 1
    return 0


def install(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        subprocess.run(command, cwd=ROOT, check=True)
    # Installers do not compile editable modules, and where bytecode is not written on import,
    # each start would compile them again.
    compiler = [str(python()), "-m", "compileall", "-q", "src"]
    subprocess.run(compiler, cwd=ROOT, check=True)


def with_uv(uv: str) -> list[list[str]]:
    into = ["--quiet", "--python", str(python())]
    return [
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)],
        [uv, "pip", "sync", *into, "--require-hashes", "--compile-bytecode", str(LOCK)],
        [uv, "pip", "install", *into, "--no-deps", "--no-build-isolation", "--editable", "."],
    ]


def with_pip() -> list[list[str]]:
    pip = [str(python()), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    return [
        [sys.executable, "-m", "venv", "--clear", str(VENV)],
        [*pip, "--require-hashes", "--requirement", str(LOCK)],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", "."],
    ]


def python() -> Path:
    return VENV / ("Scripts" if sys.platform == "win32" else "bin") / "python"


if __name__ == "__main__":
    sys.exit(main())
