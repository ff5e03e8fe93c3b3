"""Deaths and recoveries: each run a forked process on a crash site, each death proven.

The caller has no threads and no event loop, so that it can fork; see `sweep`.
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perdure.testing import crash_points, forked
from perdure.testing.crash_points import CrashPoint
from perdure.testing.forked import Ended
from tests.crash import verdict
from tests.crash.life import live
from tests.crash.site import CrashSite
from tests.crash.story import Story
from tests.crash.verdict import Remains

_MEMORY: Final = "/dev/shm"


class NotAsExpectedError(Exception):
    """A run did not end as it had to: it lived on, died elsewhere, or failed."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The run without a crash: what all others are compared with."""

    points: tuple[CrashPoint, ...]
    story: Story


def whole_run() -> WholeRun:
    with new_site() as site:
        points = finish(site, life=0)
        remains, wrong = verdict.at_the_end(site, None, [])
        if wrong:
            raise NotAsExpectedError(f"the run without a crash is broken: {wrong}")
        return WholeRun(points, remains.story)


def crash_once(whole: WholeRun, k: int) -> list[str]:
    """What is wrong after a death at point `k` and a second life to the end."""
    with new_site() as site:
        if die(site, life=0, at=k) != whole.points[k - 1]:
            return ["the point has another name than in the run without a crash"]
        remains, wrong = verdict.after_death(site, None)
        finish(site, life=1)
        _, later = verdict.at_the_end(site, whole.story, [remains])
        return [*wrong, *later]


def crash_twice(whole: WholeRun, k: int, m: int) -> list[str]:
    """The same with a second death, at point `m` of the recovery."""
    with new_site() as site:
        die(site, life=0, at=k)
        first, wrong = verdict.after_death(site, None)
        return [*wrong, *_second_death(site, whole, first, m)]


def crash_twice_at(whole: WholeRun, k: int, parts: Iterable[float]) -> list[tuple[int, list[str]]]:
    """For each part in [0, 1): the point at that part of the recovery, and what is wrong."""
    found: list[tuple[int, list[str]]] = []
    with new_site() as site:
        die(site, life=0, at=k)
        first, wrong = verdict.after_death(site, None)
        with _undone(site):
            length = len(finish(site, life=1))
        for part in parts:
            m = 1 + int(part * length)
            with _undone(site):
                found.append((m, [*wrong, *_second_death(site, whole, first, m)]))
    return found


def _second_death(site: CrashSite, whole: WholeRun, first: Remains, m: int) -> list[str]:
    die(site, life=1, at=m)
    second, wrong = verdict.after_death(site, first)
    finish(site, life=2)
    _, later = verdict.at_the_end(site, whole.story, [first, second])
    return [*wrong, *later]


# ---- one process --------------------------------------------------------------------------------


def die(site: CrashSite, *, life: int, at: int) -> CrashPoint:
    """Run until the point of that number, and prove that the process died there."""
    ended, points = _run(site, life=life, die_at=at)
    if not ended.killed or len(points) != at:
        raise NotAsExpectedError(
            f"life {life} was to be killed at its point {at};"
            f" it ended with {ended.code} after {_last(points)}"
        )
    return points[-1]


def finish(site: CrashSite, *, life: int) -> tuple[CrashPoint, ...]:
    """Run to the end, and prove that it was reached; the points on the way."""
    ended, points = _run(site, life=life, die_at=None)
    if ended.code != 0:
        raise NotAsExpectedError(
            f"life {life} was to reach its end; it ended with {ended.code} after {_last(points)}"
        )
    return points


def _run(site: CrashSite, *, life: int, die_at: int | None) -> tuple[Ended, tuple[CrashPoint, ...]]:
    ended = forked.run_forked(
        lambda descriptor: live(site, life=life, descriptor=descriptor, die_at=die_at)
    )
    return ended, crash_points.read_lines(ended.said)


def _last(points: tuple[CrashPoint, ...]) -> str:
    return str(points[-1]) if points else "no point at all"


# ---- sites --------------------------------------------------------------------------------------


@contextmanager
def new_site() -> Generator[CrashSite]:
    # A killed process loses nothing that it wrote, to a disk or to memory; memory is quicker.
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-crash-", dir=memory) as root:
        site = CrashSite(Path(root) / "site")
        site.prepare()
        yield site


@contextmanager
def _undone(site: CrashSite) -> Generator[None]:
    """Whatever happens in the scope, the site is afterwards as it was."""
    copy = site.root.with_name("copy")
    shutil.copytree(site.root, copy)
    try:
        yield
    finally:
        shutil.rmtree(site.root)
        copy.rename(site.root)
