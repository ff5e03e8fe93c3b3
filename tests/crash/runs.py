"""Deaths and recoveries: each run a forked process on a crash site, each death proven.

Deaths that are looked at one after the other share the life before them: the process stands still
at each of their points, after a copy of it was killed there, while the next life is lived to its
end on the files that the death left. Deaths that leave the same files, byte by byte, share that
life as well. The caller has no threads and no event loop; see `sweep`.
"""

import shutil
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from tests.crash import verdict
from tests.crash.crash_site import CrashSite, contents, in_its_place, new_site
from tests.crash.log_summary import Story
from tests.crash.process_run import live
from tests.crash.verdict import Remains
from tests.harness.crash import forked
from tests.harness.crash import points as crash_points
from tests.harness.crash.forked import Ended
from tests.harness.crash.points import CrashPoint

SEED: Final = 20_260_101


class Judged(NamedTuple):
    """What is wrong after a death at one point."""

    point: int
    wrong: list[str]
    lived: bool = True
    """Whether there was a next life for this one; else it left what the one before it did."""


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


def crash_once(whole: WholeRun, numbers: Collection[int]) -> Iterator[Judged]:
    """For each point: what is wrong after a death there and a second life to the end.

    A life sees nothing but the files, and its time and its ids are its own: on the same files it is
    the same life. It is lived once for processes that left the same. `crash_alike` shows that it
    is the same.
    """
    left: dict[str, bytes] = {}
    wrong: list[str] = []
    with new_site() as site:
        for point in deaths(site, life=0, at=numbers):
            k = point.number
            if point != whole.points[k - 1]:
                yield Judged(k, ["the point has another name than in the run without a crash"])
                continue
            before, left = left, contents(site.root)
            if left != before:
                with in_its_place(site.root):
                    wrong = _lived(site, whole, [])
            yield Judged(k, wrong, lived=left != before)


def crash_alike(numbers: Collection[int]) -> Iterator[Judged]:
    """For each point that left what the one before it did: whether its next life was another."""
    left: dict[str, bytes] = {}
    lived: tuple[object, ...] = ()
    with new_site() as site:
        for point in deaths(site, life=0, at=numbers):
            files_before, left = left, contents(site.root)
            life_before = lived
            with in_its_place(site.root):
                lived = finish(site, life=1), verdict.left(site)
            differs = left == files_before and lived != life_before
            yield Judged(point.number, ["the same files led to another life"] if differs else [])


def crash_twice(whole: WholeRun, k: int, m: int) -> list[str]:
    """What is wrong after a death at point `k`, another at point `m` of the recovery, and a life.

    Each death is that of a process which lived for nothing else.
    """
    with new_site() as site:
        die(site, life=0, at=k)
        first, wrong = verdict.after_death(site, None)
        die(site, life=1, at=m)
        return [*wrong, *_recovered(site, whole, [first])]


def crash_twice_drawn(
    whole: WholeRun, numbers: Collection[int], times: int
) -> Iterator[tuple[int, int | None, list[str]]]:
    """For each point, and for so many drawn points of the recovery from it: what is wrong.

    No second point, if there was no recovery in which to draw one.
    """
    with new_site() as site:
        for point in deaths(site, life=0, at=numbers):
            with in_its_place(site.root):
                first, wrong = verdict.after_death(site, None)
                try:
                    for m, later in _drawn(site, whole, first, Random(f"{SEED} {point}"), times):
                        yield point.number, m, [*wrong, *later]
                except NotAsExpectedError as error:
                    yield point.number, None, [*wrong, str(error)]


def _drawn(
    site: CrashSite, whole: WholeRun, first: Remains, chance: Random, times: int
) -> Iterator[tuple[int, list[str]]]:
    with in_its_place(site.root):
        length = len(finish(site, life=1))
    for second in deaths(site, life=1, at=chance.sample(range(1, length + 1), times)):
        with in_its_place(site.root):
            yield second.number, _lived(site, whole, [first])


def crash_apart(numbers: Collection[int]) -> Iterator[Judged]:
    """For each point: in what the death of a copy differs from that of a process of its own."""
    with new_site() as site:
        for point in deaths(site, life=0, at=numbers):
            left = verdict.left(site)
            with in_its_place(site.root):
                shutil.rmtree(site.root)
                site.prepare()
                die(site, life=0, at=point.number)
                alone = verdict.left(site)
            differ = sorted(what for what in left | alone if left.get(what) != alone.get(what))
            yield Judged(point.number, [f"a copy leaves {what} otherwise" for what in differ])


def _lived(site: CrashSite, whole: WholeRun, before: list[Remains]) -> list[str]:
    """What `_recovered` finds, and if there is no such life, that."""
    try:
        return _recovered(site, whole, before)
    except NotAsExpectedError as error:
        return [str(error)]


def _recovered(site: CrashSite, whole: WholeRun, before: list[Remains]) -> list[str]:
    """What is wrong with what a death left, the latest of several, and with the life after it."""
    latest, wrong = verdict.after_death(site, before[-1] if before else None)
    remains = [*before, latest]
    finish(site, life=len(remains))
    _, later = verdict.at_the_end(site, whole.story, remains)
    return [*wrong, *later]


# ---- processes ----------------------------------------------------------------------------------


def deaths(site: CrashSite, *, life: int, at: Collection[int]) -> Iterator[CrashPoint]:
    """Die at each of these points, and prove it. Meanwhile the site is as that death left it.

    Whoever goes on with it does so in its place: the process that stands still has its files open.
    """
    numbers = sorted(at)
    dying = forked.dying(
        lambda mortal: live(site, life=life, descriptor=mortal.descriptor, fate=mortal.reach),
        frozenset(numbers),
    )
    with closing(dying):
        for number in numbers:
            yield _died(_next(dying), life, number)
        ended = _next(dying)
        if ended.code != 0:
            raise NotAsExpectedError(f"life {life} {_otherwise(ended)}")


def die(site: CrashSite, *, life: int, at: int) -> CrashPoint:
    """Run until the point of that number, and prove that the process died there."""
    ended = forked.run_forked(
        lambda descriptor: live(
            site, life=life, descriptor=descriptor, fate=crash_points.death_at(at)
        )
    )
    return _died(ended, life, at)


def finish(site: CrashSite, *, life: int) -> tuple[CrashPoint, ...]:
    """Run to the end, and prove that it was reached; the points on the way."""
    ended = forked.run_forked(
        lambda descriptor: live(site, life=life, descriptor=descriptor, fate=lambda number: None)
    )
    if ended.code != 0:
        raise NotAsExpectedError(f"life {life} was to reach its end; it {_otherwise(ended)}")
    return crash_points.read_lines(ended.said)


def _next(dying: Generator[tuple[int, Ended], None, Ended]) -> Ended:
    """The next death of a copy; after the last, how the process itself ended."""
    try:
        return next(dying)[1]
    except StopIteration as over:
        return over.value


def _died(ended: Ended, life: int, at: int) -> CrashPoint:
    lines = ended.said.splitlines()
    if not ended.killed or len(lines) != at:
        raise NotAsExpectedError(
            f"life {life} was to be killed at its point {at}; it {_otherwise(ended)}"
        )
    return crash_points.read_lines(lines[-1])[0]


def _otherwise(ended: Ended) -> str:
    points = crash_points.read_lines(ended.said)
    last = str(points[-1]) if points else "no point at all"
    return f"ended with {ended.code} after {last}"
