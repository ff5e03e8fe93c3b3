"""`python -m tests.harness.simulation 7`: run or repeat simulations from the command line."""

import argparse
import sys
from collections.abc import Sequence

from tests.harness.simulation.simulation import STEPS_DEFAULT, run_seed


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    first = options.first if options.seed is None else options.seed
    show = _write if options.trace else None
    for seed in range(first, first + options.count):
        report = run_seed(seed, steps=options.steps, show=show)
        if not report.ok or options.count == 1:
            _write(f"{report}\ndigest {report.digest}")
        if not report.ok:
            return 1
    if options.count > 1:
        _write(f"seeds {first} to {first + options.count - 1}: every promise was kept")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.simulation",
        description="Run the whole runtime on virtual time; the seed decides everything.",
    )
    parser.add_argument("first", nargs="?", type=int, default=0, metavar="SEED")
    parser.add_argument("--seed", type=int, help="the same, by name")
    parser.add_argument("--steps", type=int, default=STEPS_DEFAULT, help="default: %(default)s")
    parser.add_argument("--count", type=int, default=1, help="so many seeds, from SEED on")
    parser.add_argument("--trace", action="store_true", help="show every line as it happens")
    return parser


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
