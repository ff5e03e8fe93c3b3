"""Measures tools inside one process: `python -m bench inside tool_call search`.

A call is timed from the commit of its event to the commit of its settlement. Searches are
compared with plain ripgrep on the same tree, alternately, so that the file cache is warm for both.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.inside import measure
from perdure.host.process.runner import find_ripgrep
from perdure.schema.codec import JsonObject
from perdure.schema.session.event import SessionEvent, ToolCalled, ToolSucceeded
from perdure.store.log.event_store import StoredEvent
from tests.contract.tools.tool_bench import ToolBench
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, calls, scripted_provider, text

CALLS = 200
FILES = 50_000
FOLDER_FILES = 100
ROUNDS = 15
Row = tuple[tuple[str, ...], str, JsonObject]
"""Arguments of plain ripgrep, the name of the tool, and the input of the tool."""

SEARCHES: dict[str, Row] = {
    "glob of many": (("--files", "-g", "*.py"), "glob", {"pattern": "*.py"}),
    "glob of one": (("--files", "-g", "file5.py"), "glob", {"pattern": "file5.py"}),
    "grep of many": (("word1",), "grep", {"pattern": "word1"}),
    "grep of one": (("needle_rare",), "grep", {"pattern": "needle_rare"}),
}


class Stopwatch:
    """Records the time of every commit."""

    def __init__(self) -> None:
        self.open: dict[str, float] = {}
        self.millis: list[float] = []

    def hear(self, events: Sequence[StoredEvent]) -> None:
        for stored in events:
            self._note(stored.event)

    def _note(self, event: SessionEvent) -> None:
        if isinstance(event, ToolCalled):
            self.open[event.call_id] = time.perf_counter()
        elif isinstance(event, ToolSucceeded):
            self.millis.append((time.perf_counter() - self.open.pop(event.call_id)) * 1e3)


@measure
async def tool_call() -> dict[str, object]:
    """Milliseconds from the event of a `read` call to that of its settlement (budget: 3)."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            folders = make_folders(Path(folder), provider)
            for number in range(CALLS):
                (folders.project / f"{number}.txt").write_text(f"{number}\n" * 20)
                provider.then(calls(Call("read", {"path": f"{number}.txt"})))
            provider.then(text("done"))
            async with running(folders) as instance:
                instance.runtime.store.listen(lambda _, events, __: watch.hear(events), live=True)
                began = time.process_time()
                await instance.api.ask(await instance.api.create(agent="terse"), "read them")
                cpu = (time.process_time() - began) * 1e3
    if len(watch.millis) != CALLS:
        raise RuntimeError(f"{len(watch.millis)} calls were settled")
    return {
        "median_ms": round(statistics.median(watch.millis), 2),
        "p95_ms": round(sorted(watch.millis)[int(CALLS * 0.95)], 2),
        "cpu_ms a turn with its request": round(cpu / CALLS, 2),
    }


@measure
async def search() -> dict[str, object]:
    """Search time over 50,000 files as a multiple of plain ripgrep's (budget: 1.5)."""
    program = find_ripgrep()
    if program is None:
        raise RuntimeError("there is no ripgrep to compare with")
    with tempfile.TemporaryDirectory() as folder:
        bench = ToolBench(Path(folder), ripgrep=program)
        plant(bench.root)
        with bench.open():
            return {name: await compared(bench, program, row) for name, row in SEARCHES.items()}


async def compared(bench: ToolBench, program: str, row: Row) -> str:
    plain, tool, given = row
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        theirs.append(plainly((program, *plain, "."), bench.root))
        began = time.perf_counter()
        await bench.success(tool, **given)
        ours.append(time.perf_counter() - began)
    mine, other = statistics.median(ours), statistics.median(theirs)
    return f"{mine / other:.2f} ({mine * 1e3:.0f} ms against {other * 1e3:.0f})"


def plainly(command: Sequence[str], root: Path) -> float:
    """Return the seconds of a search with plain ripgrep."""
    began = time.perf_counter()
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    return time.perf_counter() - began


def plant(root: Path) -> None:
    """Create a tree of small sources; some contain a frequent word, one a rare word."""
    for start in range(0, FILES, FOLDER_FILES):
        folder = root / f"part{start // 5_000}" / f"folder{start // FOLDER_FILES}"
        folder.mkdir(parents=True)
        for number in range(start, start + FOLDER_FILES):
            ending = "py" if number % 5 == 0 else "txt"
            lines = f"line of {number}\n" * 20 + (f"word1 {number}\n" if number % 50 == 0 else "")
            (folder / f"file{number}.{ending}").write_text(lines)
    (root / "part3" / "needle.txt").write_text("needle_rare\n")
