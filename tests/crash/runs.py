"""Crashes and recoveries: each run is a forked process on a crash site, and each kill is verified.

Crashes that are checked one after the other share the run before them: the process stops at each
point, after a copy of it was killed there, while the next process recovers on the files that the
crash left. Crashes that leave the same files, byte by byte, share the recovery as well. The caller
has no threads and no event loop; see `sweep`.
"""

import shutil
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from tests.crash import verdict
from tests.crash.crash_site import CrashSite, contents, copied_in_place, new_site
from tests.crash.log_summary import LogSummary
from tests.crash.process_run import run_script
from tests.crash.verdict import Remains
from tests.harness.crash import forked
from tests.harness.crash import points as crash_points
from tests.harness.crash.forked import Ended
from tests.harness.crash.points import CrashPoint

SEED: Final = 20_260_101


class Judged(NamedTuple):
    """What is wrong after a crash at one point."""

    point: int
    wrong: list[str]
    recovered: bool = True
    """Whether the recovery was run; otherwise the crash left the files of the one before it."""


class UnexpectedEndError(Exception):
    """A run did not end as it had to: it was not killed, was killed elsewhere, or failed."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The run without a crash: what all others are compared with."""

    points: tuple[CrashPoint, ...]
    summary: LogSummary


def whole_run() -> WholeRun:
    with new_site() as site:
        points = finish(site, process=0)
        remains, wrong = verdict.at_the_end(site, None, [])
        if wrong:
            raise UnexpectedEndError(f"the run without a crash is broken: {wrong}")
        return WholeRun(points, remains.summary)


def crash_once(whole: WholeRun, numbers: Collection[int]) -> Iterator[Judged]:
    """For each point: what is wrong after a crash there and a recovery to the end.

    A recovery depends on nothing but the files, because its time and its ids are its own. It is run
    once for crashes that left the same files. `crash_alike` shows that it would be the same.
    """
    left: dict[str, bytes] = {}
    wrong: list[str] = []
    with new_site() as site:
        for point in deaths(site, process=0, at=numbers):
            k = point.number
            if point != whole.points[k - 1]:
                yield Judged(k, ["the point has another name than in the run without a crash"])
                continue
            before, left = left, contents(site.root)
            if left != before:
                with copied_in_place(site.root):
                    wrong = _checked_recovery(site, whole, [])
            yield Judged(k, wrong, recovered=left != before)


def crash_alike(numbers: Collection[int]) -> Iterator[Judged]:
    """For each point that left the files of the one before it: whether its recovery differs."""
    left: dict[str, bytes] = {}
    recovered: tuple[object, ...] = ()
    with new_site() as site:
        for point in deaths(site, process=0, at=numbers):
            files_before, left = left, contents(site.root)
            recovered_before = recovered
            with copied_in_place(site.root):
                recovered = finish(site, process=1), verdict.left(site)
            differs = left == files_before and recovered != recovered_before
            yield Judged(
                point.number, ["the same files led to another recovery"] if differs else []
            )


def crash_twice(whole: WholeRun, k: int, m: int) -> list[str]:
    """What is wrong after a crash at point `k`, one at point `m` of the recovery, and a third run.

    Each time the process itself is killed, not a copy.
    """
    with new_site() as site:
        die(site, process=0, at=k)
        first, wrong = verdict.after_death(site, None)
        die(site, process=1, at=m)
        return [*wrong, *_recovered(site, whole, [first])]


def crash_twice_drawn(
    whole: WholeRun, numbers: Collection[int], times: int
) -> Iterator[tuple[int, int | None, list[str]]]:
    """For each point, and for so many drawn points of the recovery from it: what is wrong.

    No second point, if there was no recovery in which to draw one.
    """
    with new_site() as site:
        for point in deaths(site, process=0, at=numbers):
            with copied_in_place(site.root):
                first, wrong = verdict.after_death(site, None)
                try:
                    for m, later in _drawn(site, whole, first, Random(f"{SEED} {point}"), times):
                        yield point.number, m, [*wrong, *later]
                except UnexpectedEndError as error:
                    yield point.number, None, [*wrong, str(error)]


def _drawn(
    site: CrashSite, whole: WholeRun, first: Remains, chance: Random, times: int
) -> Iterator[tuple[int, list[str]]]:
    with copied_in_place(site.root):
        length = len(finish(site, process=1))
    for second in deaths(site, process=1, at=chance.sample(range(1, length + 1), times)):
        with copied_in_place(site.root):
            yield second.number, _checked_recovery(site, whole, [first])


def crash_apart(numbers: Collection[int]) -> Iterator[Judged]:
    """For each point: how a killed copy differs from a killed process."""
    with new_site() as site:
        for point in deaths(site, process=0, at=numbers):
            left = verdict.left(site)
            with copied_in_place(site.root):
                shutil.rmtree(site.root)
                site.prepare()
                die(site, process=0, at=point.number)
                alone = verdict.left(site)
            differ = sorted(what for what in left | alone if left.get(what) != alone.get(what))
            yield Judged(point.number, [f"a copy leaves {what} otherwise" for what in differ])


def _checked_recovery(site: CrashSite, whole: WholeRun, before: list[Remains]) -> list[str]:
    """What `_recovered` finds; if the recovery does not end as it must, that."""
    try:
        return _recovered(site, whole, before)
    except UnexpectedEndError as error:
        return [str(error)]


def _recovered(site: CrashSite, whole: WholeRun, before: list[Remains]) -> list[str]:
    """What is wrong with what the latest of several crashes left, and with the recovery from it."""
    latest, wrong = verdict.after_death(site, before[-1] if before else None)
    remains = [*before, latest]
    finish(site, process=len(remains))
    _, later = verdict.at_the_end(site, whole.summary, remains)
    return [*wrong, *later]


# ---- processes ----------------------------------------------------------------------------------


def deaths(site: CrashSite, *, process: int, at: Collection[int]) -> Iterator[CrashPoint]:
    """Kill a copy at each of these points, and verify it; the site is then as that crash left it.

    A recovery must work on a copy of the site: the process that stopped has its files open.
    """
    numbers = sorted(at)
    crashes = forked.kill_copies(
        lambda child: run_script(
            site, process=process, descriptor=child.descriptor, on_point=child.reach
        ),
        frozenset(numbers),
    )
    with closing(crashes):
        for number in numbers:
            yield _died(_next(crashes), process, number)
        ended = _next(crashes)
        if ended.code != 0:
            raise UnexpectedEndError(f"process {process} {_otherwise(ended)}")


def die(site: CrashSite, *, process: int, at: int) -> CrashPoint:
    """Run until the point of that number, and verify that the process was killed there."""
    ended = forked.run_forked(
        lambda descriptor: run_script(
            site, process=process, descriptor=descriptor, on_point=crash_points.kill_at(at)
        )
    )
    return _died(ended, process, at)


def finish(site: CrashSite, *, process: int) -> tuple[CrashPoint, ...]:
    """Run to the end, and verify that it was reached; the points on the way."""
    ended = forked.run_forked(
        lambda descriptor: run_script(
            site, process=process, descriptor=descriptor, on_point=lambda number: None
        )
    )
    if ended.code != 0:
        raise UnexpectedEndError(f"process {process} was to reach its end; it {_otherwise(ended)}")
    return crash_points.read_lines(ended.output)


def _next(crashes: Generator[tuple[int, Ended], None, Ended]) -> Ended:
    """How the next copy was killed; after the last, how the process itself ended."""
    try:
        return next(crashes)[1]
    except StopIteration as over:
        return over.value


def _died(ended: Ended, process: int, at: int) -> CrashPoint:
    lines = ended.output.splitlines()
    if not ended.killed or len(lines) != at:
        raise UnexpectedEndError(
            f"process {process} was to be killed at its point {at}; it {_otherwise(ended)}"
        )
    return crash_points.read_lines(lines[-1])[0]


def _otherwise(ended: Ended) -> str:
    points = crash_points.read_lines(ended.output)
    last = str(points[-1]) if points else "no point at all"
    return f"ended with {ended.code} after {last}"
