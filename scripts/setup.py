"""Creates a virtual environment with locked packages: `.venv` for work, `.venv-run` to run.

`python scripts/setup.py` installs what developers need (requirements-dev.lock), this project in
editable form, and bytecode; `python scripts/setup.py run` only what running needs
(requirements-run.lock), and `compare` the other libraries of docs/comparison.md. Uses `uv` when it
is on PATH and pip otherwise; both check the hashes of the lock. The configuration of the machine
decides which package index is used.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Target:
    """An environment to make: where, from which lock, and what of the project is in it."""

    venv: Path
    lock: Path
    with_project: bool = False
    with_command: bool = False

    @property
    def python(self) -> Path:
        return self.venv / ("Scripts" if sys.platform == "win32" else "bin") / "python"


TARGETS = {
    "dev": Target(ROOT / ".venv", ROOT / "requirements-dev.lock", with_project=True),
    "run": Target(ROOT / ".venv-run", ROOT / "requirements-run.lock", with_command=True),
    "compare": Target(ROOT / ".venv-compare", ROOT / "requirements-compare.lock"),
}


def main(name: str = "dev") -> int:
    target = TARGETS[name]
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
        install(target, with_uv(uv, target) if uv else with_pip(target))
    except subprocess.CalledProcessError as failure:
        print(
            f"setup failed at: {' '.join(failure.cmd)}\n"
            "Fix the error above and run the same command again.",
            file=sys.stderr,
        )
        return 1
    return 0


def install(target: Target, commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        subprocess.run(command, cwd=ROOT, check=True)
    # Installers do not compile editable modules, and where bytecode is not written on import,
    # each start would compile them again.
    if target.with_command:
        write_command(target)
    compiler = [str(target.python), "-m", "compileall", "-q", "src"]
    subprocess.run(compiler, cwd=ROOT, check=True)


def write_command(target: Target) -> None:
    """Write the command `perdure` of an environment into which the project is not installed."""
    command = target.python.with_name("perdure")
    command.write_text(
        f"#!{target.python}\n"
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from perdure.cli.main import main\n"
        "sys.exit(main())\n",
        encoding="utf-8",
    )
    command.chmod(0o755)


def with_uv(uv: str, target: Target) -> list[list[str]]:
    into = ["--quiet", "--python", str(target.python)]
    lock = ["--require-hashes", "--compile-bytecode", str(target.lock)]
    project = [uv, "pip", "install", *into, "--no-deps", "--no-build-isolation", "--editable", "."]
    return [
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(target.venv)],
        [uv, "pip", "sync", *into, *lock],
        *([project] if target.with_project else []),
    ]


def with_pip(target: Target) -> list[list[str]]:
    pip = [str(target.python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    project = [*pip, "--no-deps", "--no-build-isolation", "--editable", "."]
    return [
        [sys.executable, "-m", "venv", "--clear", str(target.venv)],
        [*pip, "--require-hashes", "--requirement", str(target.lock)],
        *([project] if target.with_project else []),
    ]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
