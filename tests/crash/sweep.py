"""`python -m tests.crash.sweep --point 17`: crash at a point, start again, compare.

Without arguments every point is swept. It prints what is wrong and how to repeat it, and exits
with 1 if anything is. Tests run it as a command, because a process that forks must have no threads.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.crash import crash_site, process_run, runs
from tests.crash.runs import Judged, UnexpectedEndError, WholeRun

SECONDS_PER_FIRST: Final = 6
"""Second crashes for each first one: they share its recovery."""

Fault = tuple[str, str]
"""The arguments that repeat it, and what is wrong."""


@dataclass(slots=True)
class Swept:
    crashes: int
    """How many crashes there were to be."""
    recoveries: int = 0
    """Runs after a crash, unless it left the files of the one before it."""
    faults: list[Fault] = field(default_factory=list[Fault])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.then is not None and options.point is None:
        parser.error("--then needs --point")
    with crash_site.new_site() as aside:
        process_run.warm_up(aside)
    whole = runs.whole_run()
    if options.list:
        _say("\n".join(map(str, whole.points)))
        return 0
    if options.point is not None and not 0 < options.point <= len(whole.points):
        parser.error(f"points are numbered from 1 to {len(whole.points)}")
    if options.pairs is not None and not 0 < firsts_of(options.pairs) <= len(whole.points):
        parser.error(f"--pairs is from 1 to {len(whole.points) * SECONDS_PER_FIRST}")
    swept = _sweep(whole, options)
    if not swept.crashes:
        parser.error("there is no such point")
    for where, what in swept.faults:
        _say(f"{what}\n  repeat with: python -m tests.crash.sweep {where}")
    _say(f"{swept.recoveries} recoveries after them")
    _say(f"{swept.crashes} crashes at {len(whole.points)} points: {len(swept.faults)} faults")
    return 1 if swept.faults else 0


def _sweep(whole: WholeRun, options: argparse.Namespace) -> Swept:
    shard, shards = options.shard
    if options.pairs is not None:
        firsts = part(drawn(whole, firsts_of(options.pairs)), shard, shards)
        return _pairs(whole, firsts)
    if options.then is not None:
        return _pair(whole, options.point, options.then)
    points = part(_chosen(whole, options), shard, shards)
    if options.apart:
        return _singles(whole, points, runs.crash_apart(points))
    if options.alike:
        return _singles(whole, points, runs.crash_alike(points))
    return _singles(whole, points, runs.crash_once(whole, points))


def _chosen(whole: WholeRun, options: argparse.Namespace) -> list[int]:
    if options.point is not None:
        return [options.point]
    named = [point.number for point in whole.points if options.like in point.name]
    return named[:: options.every]


def part(points: Sequence[int], shard: int, shards: int) -> Sequence[int]:
    """One of several parts, each of neighbouring points: these often leave equal files."""
    count = len(points)
    return points[count * shard // shards : count * (shard + 1) // shards]


def firsts_of(pairs: int) -> int:
    """How many first points this many pairs need."""
    return -(-pairs // SECONDS_PER_FIRST)


def drawn(whole: WholeRun, count: int) -> list[int]:
    """First points of the pairs, in the order in which a run reaches them."""
    numbers = range(1, len(whole.points) + 1)
    return sorted(Random(runs.SEED).sample(numbers, count))


def _singles(whole: WholeRun, points: Sequence[int], found: Iterator[Judged]) -> Swept:
    swept = Swept(crashes=len(points))
    judged = 0
    try:
        for k, wrong, recovered in found:
            judged += 1
            swept.recoveries += recovered
            swept.faults += _faults(whole, k, None, wrong)
    except UnexpectedEndError as error:
        k = points[min(judged, len(points) - 1)]
        swept.faults += _faults(whole, k, None, [str(error)])
    return swept


def _pair(whole: WholeRun, k: int, m: int) -> Swept:
    try:
        wrong = runs.crash_twice(whole, k, m)
    except UnexpectedEndError as error:
        wrong = [str(error)]
    return Swept(crashes=1, recoveries=1, faults=[*_faults(whole, k, m, wrong)])


def _pairs(whole: WholeRun, firsts: Sequence[int]) -> Swept:
    swept = Swept(crashes=len(firsts) * SECONDS_PER_FIRST)
    for k, m, wrong in runs.crash_twice_drawn(whole, firsts, SECONDS_PER_FIRST):
        swept.recoveries += 1
        swept.faults += _faults(whole, k, m, wrong)
    return swept


def _faults(whole: WholeRun, k: int, m: int | None, wrong: Iterable[str]) -> Iterator[Fault]:
    where, name = f"--point {k}", f"{whole.points[k - 1]}"
    if m is not None:
        where, name = f"{where} --then {m}", f"{name}, then {m}"
    for what in wrong:
        yield where, f"{name}: {what}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.sweep",
        description="Kill the runtime at its crash points, restart it, and check what it keeps.",
    )
    parser.add_argument("--list", action="store_true", help="name every point and stop")
    parser.add_argument("--point", type=int, help="only the point of this number")
    parser.add_argument(
        "--then", type=int, help="with --point: crash again at this point of the recovery"
    )
    parser.add_argument("--like", default="", help="only points with this in their name")
    parser.add_argument("--every", type=int, default=1, help="only every n-th of them")
    parser.add_argument("--pairs", type=int, help="crash twice, at this many drawn pairs")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="kill the process itself, and compare with a killed copy",
    )
    parser.add_argument(
        "--alike",
        action="store_true",
        help="compare the recoveries after crashes that left the same files",
    )
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="N/OF")
    return parser


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    return int(number), int(of)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
