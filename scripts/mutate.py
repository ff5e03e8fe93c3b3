"""Changes the program in small ways and counts which changes the tests notice.

    make mutate MODULES="core/session/inbox.py store"     modules or folders
    make mutate MODULES=store SAMPLE=40           at most so many of each module, always the same

Works on copies below `.scratch/mutate`, one for each worker, so that an interrupted run leaves
nothing changed. What is changed is in `mutants.py`.

A module is tested with the tests at its mirrored path: `core/session/inbox.py` with
`tests/unit/core/session/test_inbox.py` and the same below `tests/contract`. Where there are none,
with the tests of its layer that enter it, those first that enter little else. Which these are is
measured once for each layer (`entered.py`, some minutes) and kept; `FRESH=1` measures again.
"""

import json
import os
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress, count, zip_longest
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import monotonic, sleep
from typing import Final

import apsw
import hypothesis
import msgspec
import pytest
import pytest_asyncio

from scripts.mutants import Change, changes

LOADED: Final = (apsw, hypothesis, msgspec, pytest_asyncio)
"""Packages that tests need and that are never changed, imported here so that each fork has them."""
ROOT: Final = Path(__file__).resolve().parent.parent
PLACE: Final = ROOT / ".scratch" / "mutate"
TREES: Final = (PLACE / "tree_1", PLACE / "tree_2")
PACKAGE: Final = Path("src") / "perdure"
SEED: Final = 1
RUN_SECONDS_MAX: Final = 90
MEASURED_SECONDS_MAX: Final = 6
LEFT_OUT: Final = ("cacheprovider", "xdist", "schemathesis", "anyio")
LOADED_BEFORE: Final = "ignore::pytest.PytestAssertRewriteWarning"
OPTIONS: Final = (
    *("-q", "-x", "--tb=line", "-o", "timeout=20", "-W", LOADED_BEFORE),
    *(f"-pno:{plugin}" for plugin in LEFT_OUT),
)
KINDS: Final = ("tests/unit", "tests/contract")
"""Test folders that mirror the paths of the package."""
ALSO: Final = {
    "core/approval/rules.py": ("tests/unit/core/shell/test_command.py",),
    "store/database/committer.py": ("tests/contract/store/database/test_sqlite.py",),
    "store/database/sqlite_connection.py": ("tests/contract/store/database/test_sqlite.py",),
    "store/log/projector.py": ("tests/contract/store/tables",),
    "store/log/repair.py": ("tests/museum/test_rows.py", "tests/museum/test_files.py"),
    "store/migrate.py": ("tests/museum/test_versions.py", "tests/museum/test_files.py"),
    "store/storage.py": ("tests/contract/cli/commands/test_storage.py",),
}
"""Tests at another path that are about a module."""
_TIMES: Final = count(1)


def main(arguments: Sequence[str]) -> int:
    os.nice(10)
    if "FRESH" in os.environ:
        for kept in PLACE.glob("entered_*.json"):
            kept.unlink()
    for tree in TREES:
        shutil.rmtree(tree, ignore_errors=True)
        for folder in ("src", "tests", "docs", "scripts"):
            shutil.copytree(ROOT / folder, tree / folder)
        shutil.copy(ROOT / "pyproject.toml", tree)
    total: Counter[str] = Counter()
    for module in modules(arguments or ("store",)):
        outcomes = mutated(module)
        total += outcomes
        print(f"{module}: {summary(outcomes)}", flush=True)
    print(f"all: {summary(total)}")
    return 0


def modules(names: Sequence[str]) -> Iterator[Path]:
    program = TREES[0] / PACKAGE
    for name in names:
        path = program / name
        for found in [path] if path.suffix else sorted(path.rglob("*.py")):
            if found.stat().st_size:
                yield found.relative_to(program)


def mutated(module: Path) -> Counter[str]:
    """How many changes of one module were noticed; those that were not are printed."""
    source = (TREES[0] / PACKAGE / module).read_bytes()
    found = changes(source)
    drawn = Random(SEED).sample(found, min(len(found), int(os.environ.get("SAMPLE", len(found)))))
    tests = tests_of(module)
    outcomes = Counter(made=len(found), drawn=len(drawn))
    for change, code in runs(module, source, [Change(0, 0, b""), *drawn], tests):
        if change.is_none and code != 0:
            raise SystemExit(f"{module}: tests fail without a change, see {PLACE}/*.txt; FRESH=1?")
        if code != 0:
            outcomes["noticed"] += 1
        elif not change.is_none:
            print(f"{module}:{change.shown(source)}", flush=True)
    return outcomes


def runs(
    module: Path, source: bytes, wanted: Sequence[Change], tests: Sequence[str]
) -> Iterator[tuple[Change, int]]:
    """Each change, and the exit code of its tests; as many at once as there are trees."""
    free, left = [*TREES], [*reversed(wanted)]
    under_way: dict[int, tuple[Change, Path, float]] = {}
    while left or under_way:
        while free and left:
            tree, change = free.pop(), left.pop()
            put(tree / PACKAGE / module, change.applied(source))
            under_way[start(tree, tests)] = change, tree, monotonic() + RUN_SECONDS_MAX
        for pid, (change, tree, deadline) in [*under_way.items()]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del under_way[pid]
                free.append(tree)
                put(tree / PACKAGE / module, source)
                yield change, os.waitstatus_to_exitcode(status)
            elif monotonic() > deadline:
                os.kill(pid, SIGKILL)
        sleep(0.01)


def put(module: Path, source: bytes) -> None:
    """Write a module with a time of its own, so that no bytecode of an earlier change is used."""
    module.write_bytes(source)
    time = next(_TIMES)
    os.utime(module, (time, time))


def tests_of(module: Path) -> list[str]:
    """Files by their path; without one, single tests as measured, as long as they may take."""
    named = [*mirrored(module, TREES[0]), *ALSO.get(module.as_posix(), ())]
    if named:
        return named
    tests = list(measured(module))
    together = accumulate(seconds for _, seconds in tests)
    within = (so_far < MEASURED_SECONDS_MAX for so_far in together)
    return [test for test, _ in compress(tests, within)]


def mirrored(module: Path, root: Path) -> list[str]:
    """Tests named like a module, alone or with more words: `test_event_store_append.py`."""
    name = f"test_{module.stem.removesuffix('_table')}"
    return [
        path.relative_to(root).as_posix()
        for kind in KINDS
        for pattern in (f"{name}.py", f"{name}_*.py")
        for path in sorted((root / kind / module.parent).glob(pattern))
    ]


def measured(module: Path) -> Iterator[tuple[str, float]]:
    """The tests that enter a module, and their seconds: one for each function, then another."""
    folder = module.parts[0]
    kept = PLACE / f"entered_{folder}.json"
    if not kept.exists():
        print(f"measuring which tests enter {folder}/", flush=True)
        plugin = ["--maxfail=1000", "-p", "scripts.entered"]
        tests = [f"{kind}/{folder}" for kind in KINDS if (TREES[0] / kind / folder).is_dir()]
        os.waitpid(start(TREES[0], [*plugin, *tests], ENTERED=str(kept)), 0)
    entered: dict[str, tuple[float, list[str]]] = json.loads(kept.read_bytes())
    seconds: defaultdict[str, float] = defaultdict(float)
    of_function: defaultdict[str, list[str]] = defaultdict(list)
    for case, (took, functions) in sorted(entered.items(), key=lambda item: len(item[1][1])):
        test = case.partition("[")[0]
        seconds[test] += took
        for function in functions:
            if function.startswith(f"{module}:"):
                of_function[function].append(test)
    in_turn = chain.from_iterable(zip_longest(*of_function.values()))
    return ((test, seconds[test]) for test in dict.fromkeys(in_turn) if test is not None)


def start(tree: Path, tests: Sequence[str], **variables: str) -> int:
    """Run tests of a tree until one fails, in a fork of this process; its id."""
    pid = os.fork()
    if pid:
        return pid
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree / "src"), **variables}
    sys.path[:0] = [str(tree), str(tree / "src")]
    with Path(os.devnull).open() as nothing, tree.with_suffix(".txt").open("w") as output:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    code = 1
    try:
        code = pytest.main([*OPTIONS, *tests])
    finally:
        os._exit(code)


def summary(outcomes: Counter[str]) -> str:
    noticed, drawn, made = outcomes["noticed"], outcomes["drawn"], outcomes["made"]
    of = "" if drawn == made else f", {drawn} of {made} drawn"
    return f"{noticed} of {drawn} changes noticed ({100 * noticed / (drawn or 1):.0f} %){of}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
