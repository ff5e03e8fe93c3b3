"""A directory and a file are swapped for links to the outside while the file tools work."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.host.process.runner import find_ripgrep
from perdure.tools.api.registry import ToolSuccess
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.requirements import requirement

SWAPS = 10_000
ROUNDS = 60
CANARY = "CANARY-4711"

# A process and not a thread: it must not wait for our interpreter, nor we for its. The two names
# are exchanged in one step, so that there is always something at both.
SWAPPER = """
import ctypes, os, sys, threading
exchange = ctypes.CDLL(None, use_errno=True).renameat2
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
places = [(os.fsencode(real), os.fsencode(real + ".link")) for real in sys.argv[2:]]
swaps = 0
while not ended.is_set() or swaps < int(sys.argv[1]) or swaps % 4:
    for real, link in places:
        if exchange(-100, real, -100, link, 2):
            sys.exit(os.strerror(ctypes.get_errno()))
        swaps += 1
print(swaps)
"""


@contextmanager
def swapping(*places: tuple[Path, Path]) -> Generator[None]:
    """While the scope is open, each place is now itself and now a link to something else."""
    for real, target in places:
        os.symlink(target, f"{real}.link")
    arguments = [str(real) for real, _ in places]
    command = [sys.executable, "-c", SWAPPER, str(SWAPS), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield
        said, _ = process.communicate(timeout=60)
    assert int(said) >= SWAPS


def snapshot(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text() if path.is_file() else "directory"
        for path in sorted(directory.rglob("*"))
    }


def calls(number: int) -> list[tuple[str, dict[str, object]]]:
    old, new = ("even", "odd") if number % 2 else ("odd", "even")
    lines = ("*** Begin Patch", "*** Update File: d/p", "@@", f"-{old}", f"+{new}")
    added = ("*** Begin Patch", f"*** Add File: d/sub/a{number}", "+x", "*** End Patch")
    return [
        ("read", {"path": "d/f"}),
        ("read", {"path": "f"}),
        ("read", {"path": "d"}),
        ("write", {"path": f"d/n{number}", "content": "x"}),
        ("write", {"path": f"d/deep{number}/n", "content": "x"}),
        ("write", {"path": "f", "content": "inside"}),
        ("edit", {"path": "d/f", "oldString": "inside", "newString": "inside "}),
        ("apply_patch", {"patchText": "\n".join((*lines, "*** End Patch"))}),
        ("apply_patch", {"patchText": "\n".join(added)}),
        ("grep", {"pattern": "inside"}),
        ("glob", {"pattern": "*"}),
    ]


@requirement("S175", "S172")
@pytest.mark.timeout(90)
async def test_ten_thousand_swaps_lead_nobody_outside(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path, ripgrep=find_ripgrep())
    with bench.open():
        await work_while_swapping(bench)


async def work_while_swapping(bench: ToolBench) -> None:
    bench.write({"d/f": "inside", "d/p": "odd\n", "d/sub/x": "", "f": "inside"})
    for name in ("f", "p"):
        (bench.outside / name).write_text(f"{CANARY} inside odd\n")
    (bench.outside / "sub").mkdir()
    (bench.outside / f"{CANARY}.txt").touch()
    before = snapshot(bench.outside)
    worked: dict[str, int] = {}
    said: list[str] = []
    places = ((bench.root / "d", bench.outside), (bench.root / "f", bench.outside / "f"))
    with swapping(*places):
        for number in range(ROUNDS):
            for name, arguments in calls(number):
                settled = await bench.call(name, **arguments)
                if isinstance(settled, ToolSuccess):
                    worked[name] = worked.get(name, 0) + 1
                    said.append(f"{settled.structured} {text_of(settled)}")
                else:
                    said.append(settled.message)
    assert snapshot(bench.outside) == before
    assert [text for text in said if CANARY in text] == []
    assert worked.keys() == {"read", "write", "edit", "apply_patch", "glob", "grep"}
    assert any("link" in text for text in said), "no swap was ever met"
    leftovers = [name for name in os.listdir(bench.root / "d") if name.endswith(".tmp")]
    assert leftovers == []
