"""Changes the program in small ways and counts which changes the tests notice.

    make mutate                                       core/ and store/, which takes hours
    make mutate MODULES="core/inbox.py core/drain.py"

Works on a copy below `.scratch/mutate`, so that an interrupted run leaves nothing changed. The tool
is installed there as well and is no part of the environment that everything else uses. A module is
tested with the tests of its own name, a table with those of its term, and either with those of its
folder where there are none.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PLACE: Final = ROOT / ".scratch" / "mutate"
TREE: Final = PLACE / "tree"
TOOL: Final = PLACE / "venv" / "bin"
PACKAGE: Final = Path("src") / "perdure"
REQUIREMENT: Final = "cosmic-ray==8.7.0"
TEST_SECONDS_MAX: Final = 60
FALLBACKS: Final = {"core": "tests/unit/core", "store": "tests/contract/event_store"}
ALSO: Final = {"projector": ("projection",), "drain": ("inbox",)}
"""Tests of another name that are about a module too."""


def main(arguments: Sequence[str]) -> int:
    modules = [PACKAGE / name for name in arguments] or [*everything()]
    prepare()
    total: Counter[str] = Counter()
    for module in modules:
        outcomes = mutated(module)
        total += outcomes
        print(f"{module.relative_to(PACKAGE)}: {summary(outcomes)}", flush=True)
    print(f"all: {summary(total)}")
    return 0


def everything() -> Iterator[Path]:
    for folder in FALLBACKS:
        for path in sorted((ROOT / PACKAGE / folder).glob("*.py")):
            if path.name != "__init__.py":
                yield path.relative_to(ROOT)


def prepare() -> None:
    """A fresh copy of the program and its tests, and the tool beside it."""
    shutil.rmtree(TREE, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "tests", "docs", "scripts"):
        shutil.copytree(ROOT / folder, TREE / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", TREE)
    if not (TOOL / "cosmic-ray").exists():
        print(f"installing {REQUIREMENT}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(TOOL.parent)], check=True)
        pip = [str(TOOL / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", REQUIREMENT], check=True)


def mutated(module: Path) -> Counter[str]:
    """How many changes of one module were noticed; those that were not are printed."""
    session, config = PLACE / "session.sqlite", PLACE / "config.toml"
    session.unlink(missing_ok=True)
    config.write_text(configuration(module), encoding="utf-8")
    for command in (["baseline"], ["init"], ["exec"]):
        with_session = [] if command == ["baseline"] else [str(session)]
        tool([*command, str(config), *with_session])
    outcomes: Counter[str] = Counter()
    for line in tool(["dump", str(session)]).splitlines():
        result: dict[str, str] = json.loads(line)[1] or {"test_outcome": "not run"}
        outcomes[result["test_outcome"]] += 1
        if result["test_outcome"] == "survived":
            print(result["diff"])
    return outcomes


def configuration(module: Path) -> str:
    python = ROOT / ".venv" / "bin" / "python"
    options = "-q -x -p no:cacheprovider -p no:xdist -p no:randomly"
    tests = " ".join(tests_of(module))
    nothing: list[str] = []
    values: dict[str, str | int | list[str]] = {
        "module-path": str(module),
        "timeout": TEST_SECONDS_MAX,
        "excluded-modules": nothing,
        "test-command": f"{python} -m pytest {options} {tests}",
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(("[cosmic-ray]", *lines, "[cosmic-ray.distributor]", 'name = "local"', ""))


def tests_of(module: Path) -> list[str]:
    names = (module.stem, *ALSO.get(module.stem, ()))
    found = [path for name in names for path in sorted((TREE / "tests").rglob(f"test_{name}.py"))]
    if found:
        return [str(path.relative_to(TREE)) for path in found]
    folder = FALLBACKS[module.relative_to(PACKAGE).parts[0]]
    of_table = f"{folder}/test_{module.stem.removesuffix('_table')}.py"
    return [of_table if (TREE / of_table).exists() else folder]


def tool(arguments: Sequence[str]) -> str:
    ran = subprocess.run(
        [str(TOOL / "cosmic-ray"), *arguments],
        cwd=TREE,
        env={**os.environ, "PYTHONPATH": str(TREE / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise SystemExit(f"cosmic-ray {arguments[0]} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def summary(outcomes: Counter[str]) -> str:
    made = sum(outcomes.values())
    share = 100 * outcomes["killed"] / made if made else 0
    return f"{outcomes['killed']} of {made} changes noticed ({share:.0f} %)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
