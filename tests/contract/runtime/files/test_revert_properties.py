"""Whatever a Session and a person do to files: a revert loses nothing that a person wrote.

`PERDURE_EXAMPLES` asks for another number of stories, and then for new ones each time.
"""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.runtime.files.step_journal import StepJournal
from perdure.schema.ids import SessionID
from tests.contract.runtime.files.snapshot_bench import SnapshotBench, snapshot_bench

ASKED: Final = os.environ.get("PERDURE_EXAMPLES")
NAMES: Final = ("a", "b", "deep/c")
Who = Literal["tool", "command", "person"]
Deed = tuple[Who, str, Literal["write", "remove", "step"]]

deeds = st.tuples(
    st.sampled_from(("tool", "command", "person")),
    st.sampled_from(NAMES),
    st.sampled_from(("write", "write", "remove", "step")),
)


@dataclass
class Story:
    """What was done, told by who did it."""

    bench: SnapshotBench
    numbers: "itertools.count[int]"
    journal: StepJournal | None = None
    boundary: int = 0
    """Everything after this step is taken back."""
    origins: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    """What the Session changed after the boundary, as it was before that."""
    persons: set[str] = field(default_factory=set[str])
    """What a person changed after the Session had, or in between."""

    async def do(self, deed: Deed) -> None:
        who, name, what = deed
        if what == "step" or self.journal is None:
            self.journal = await self.bench.step(self.bench.session)
        if what == "step":
            return
        data = None if what == "remove" else f"{who} {next(self.numbers)}".encode()
        if data is None and self.held(name) is None:
            return
        if who == "person":
            self.put(name, data)
            if name in self.origins:
                self.persons.add(name)
            return
        self.origins.setdefault(name, self.held(name))
        if who == "tool":
            await self.bench.write(self.journal, name, data)
        else:
            await self.bench.command(self.journal, lambda: self.put(name, data))

    def draw_boundary(self) -> None:
        self.boundary, self.journal = self.bench.steps, None
        self.origins, self.persons = {}, set()

    def put(self, name: str, data: bytes | None) -> None:
        path = self.bench.root / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def held(self, name: str) -> bytes | None:
        path = self.bench.root / name
        return path.read_bytes() if path.exists() else None

    def state(self) -> dict[str, bytes | None]:
        return {name: self.held(name) for name in NAMES}


@pytest.fixture(scope="module")
def runner() -> Generator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module")
def bench(runner: asyncio.Runner) -> Generator[SnapshotBench]:
    with tempfile.TemporaryDirectory() as directory:
        scope = snapshot_bench(Path(directory))
        yield runner.run(scope.__aenter__())
        runner.run(scope.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def numbers() -> "itertools.count[int]":
    return itertools.count(1)


@given(
    before=st.lists(deeds, max_size=4),
    after=st.lists(deeds, max_size=8),
    staged=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=2),
)
@settings(max_examples=int(ASKED or 200), derandomize=ASKED is None, deadline=None)
def test_a_revert_takes_back_the_session_alone_and_clearing_brings_everything_back(
    runner: asyncio.Runner,
    bench: SnapshotBench,
    numbers: "itertools.count[int]",
    before: list[Deed],
    after: list[Deed],
    staged: list[tuple[str, bool]],
) -> None:
    runner.run(_told(bench, numbers, before, after, staged))


async def _told(
    bench: SnapshotBench,
    numbers: "itertools.count[int]",
    before: list[Deed],
    after: list[Deed],
    staged: list[tuple[str, bool]],
) -> None:
    number = next(numbers)
    root = bench.root / str(number)
    root.mkdir()
    story = Story(
        SnapshotBench(root, bench.snapshots, bench.files, SessionID(f"ses_{number}")), numbers
    )
    for deed in before:
        await story.do(deed)
    story.draw_boundary()
    for deed in after:
        await story.do(deed)
    found = story.state()

    plan = await story.bench.stage(story.boundary)
    reverted = story.state()
    for name in NAMES:
        possible = {story.origins.get(name, found[name])}
        if name in story.persons:
            # Both removed it: the two cases cannot be told apart, and nothing is lost either way.
            hers = (found[name] or b"").startswith(b"person")
            possible = {found[name]} if hers else possible | {found[name]}
        assert reverted[name] in possible, (name, plan)

    meanwhile: dict[str, bytes | None] = {}
    for name, removes in staged:
        if removes and story.held(name) is None:
            continue
        meanwhile[name] = None if removes else f"person {next(numbers)}".encode()
        story.put(name, meanwhile[name])
    await story.bench.clear()
    for name in NAMES:
        kept = name in meanwhile and meanwhile[name] != reverted[name]
        expected = meanwhile[name] if kept else found[name]
        assert story.held(name) == expected, name
