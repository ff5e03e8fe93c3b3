"""Runs the long versions of the test harness, part by part, and prints the figures reached.

    make soak
    make soak ROWS="1 2 3"
    PERDURE_SEEDS=10000 make soak ROWS=16

An environment variable overrides that of a part (`soak_parts`). Every part runs, even if an earlier
one failed. A figure below the wanted one is marked but does not fail the run, because the user
decides how long a machine may be used.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.soak_parts import PARTS, ROWS, SECONDS, WITHOUT, Part, Wanted
from tests import figures

ROOT: Final = Path(__file__).resolve().parent.parent
WORKERS: Final = os.cpu_count() or 1
_MEASURED: Final = re.compile(r"^   (\S.*?) {2,}(\S.*)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_COUNTS: Final = re.compile(r"\d+ (?:passed|failed|errors?|skipped)\b")


@dataclass(frozen=True, slots=True)
class Ran:
    failed: bool
    printed: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    rows = _parser().parse_args(arguments).rows or [*ROWS]
    failed = 0
    for row in rows:
        if row in WITHOUT:
            print(f"{row:>2}  {WITHOUT[row]}")
        for part in PARTS:
            if part.row == row:
                ran = run(part)
                failed += ran.failed
                print("\n".join(report(part, ran)), flush=True)
    return 1 if failed else 0


def run(part: Part) -> Ran:
    started = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", *command(part)],
        cwd=ROOT,
        env=environment(part),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # A measurement continues after a failed scenario and prints this line.
    failed = ran.returncode != 0 or "   FAILED " in ran.stdout
    return Ran(failed, ran.stdout, time.monotonic() - started)


def command(part: Part) -> tuple[str, ...]:
    if part.bench:
        return ("bench", *part.bench)
    workers = "0" if part.alone else str(WORKERS)
    return ("pytest", "-q", "--timeout", "0", "-n", workers, "--dist", "worksteal", *part.tests)


def environment(part: Part) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**part.variables, **os.environ, "PATH": path}


def report(part: Part, ran: Ran) -> Iterator[str]:
    """Return a line for the part, one for each figure, and its whole output if it failed."""
    yield f"{part.row:>2}  {part.name:<38} {outcome(part, ran):<24} {ran.seconds:7.0f} s"
    reached = figures_of(part, ran)
    wanted = {each.figure: each for each in part.wanted}
    for name in {**reached, **wanted}:
        if name != SECONDS or name in wanted:
            amount = reached.get(name, "nothing")
            yield f"      {name:<42} {amount:>13}{_goal(amount, wanted.get(name))}"
    if part.lacks:
        yield f"      less than the row asks for: {part.lacks}"
    if ran.failed:
        yield ran.printed


def outcome(part: Part, ran: Ran) -> str:
    """Return the counts of pytest's last line, or the outcome of a measurement."""
    if part.bench:
        return "failed" if ran.failed else "measured"
    last = ran.printed.rstrip().rpartition("\n")[2]
    return ", ".join(_COUNTS.findall(last)) or "nothing ran"


def figures_of(part: Part, ran: Ran) -> dict[str, str]:
    found = dict(_MEASURED.findall(ran.printed)) if part.bench else counted(ran.printed)
    return {**found, SECONDS: f"{ran.seconds:,.0f}"}


def counted(printed: str) -> dict[str, str]:
    return {name: f"{amount:,}" for name, amount in figures.read(printed).items()}


def _goal(amount: str, wanted: Wanted | None) -> str:
    """Return the wanted figure and whether it was reached; empty if none was wanted."""
    if wanted is None:
        return ""
    number = _NUMBER.search(amount)
    is_reached = number is not None and wanted.is_reached(float(number[0].replace(",", "")))
    bound = "at most " if wanted.at_most else ""
    return f"  (wanted {bound}{wanted.amount:,}{'' if is_reached else '; not reached'})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make soak ROWS=...", description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, choices=ROWS, metavar="ROW")
    return parser


if __name__ == "__main__":
    sys.exit(main())
