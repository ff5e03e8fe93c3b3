"""Installs the `perdure` command for this user: `make install`, `make uninstall`.

The package goes into an environment of its own below PREFIX/lib/perdure; PREFIX/bin/perdure is a
link to its command. PREFIX is ~/.local by default.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-run.lock"
WITHOUT_PAGE = {"PERDURE_WITHOUT_PAGE": "1"}


def main(action: str, prefix: str) -> int:
    base = Path(prefix).expanduser().absolute()
    venv, command = base / "lib" / "perdure", base / "bin" / "perdure"
    if action == "uninstall":
        command.unlink(missing_ok=True)
        shutil.rmtree(venv, ignore_errors=True)
        print(f"removed {command} and {venv}; the data directory is kept")
        return 0
    if command.exists() and not command.is_symlink():
        print(f"{command} is another program; choose PREFIX=DIR, or remove it", file=sys.stderr)
        return 1
    python = venv / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        subprocess.run([*pip, "--require-hashes", "--requirement", str(LOCK)], check=True)
        page = [sys.executable, str(ROOT / "scripts" / "web.py"), "--if-missing"]
        without = {} if subprocess.run(page, check=False).returncode == 0 else WITHOUT_PAGE
        subprocess.run([*pip, "--no-deps", str(ROOT)], check=True, env={**os.environ, **without})
    except subprocess.CalledProcessError as failure:
        print(f"the installation failed at: {' '.join(failure.cmd)}", file=sys.stderr)
        return 1
    command.parent.mkdir(parents=True, exist_ok=True)
    command.unlink(missing_ok=True)
    command.symlink_to(venv / "bin" / "perdure")
    print(f"installed {command}")
    if str(command.parent) not in os.environ.get("PATH", "").split(os.pathsep):
        print(f'it is not on your PATH yet: export PATH="{command.parent}:$PATH"')
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
