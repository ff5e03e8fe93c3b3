"""The long versions of the harness, one after the other, with the figures that each one reached.

    make soak
    PERDURE_SEEDS=10000 PERDURE_STEPS=400 make soak

How much is done is said by variables that the tests read; without them it is what takes about an
hour on two cores. Every part runs, also after one that failed.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORKERS: Final = str(os.cpu_count() or 1)

LONG: Final[Mapping[str, str]] = {
    "PERDURE_SEEDS": "1000",
    "PERDURE_STEPS": "200",
    "PERDURE_EXAMPLES": "20000",
    "PERDURE_PAIRS": "2000",
    "PERDURE_PROCESSES": "16",
    "PERDURE_SECONDS": "300",
}


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    tests: str
    says: tuple[str, ...] = ()
    """The variables that say how much is done."""
    workers: str = WORKERS


PARTS: Final = (
    Part("simulation", "tests/simulation/test_seeds.py", ("PERDURE_SEEDS", "PERDURE_STEPS")),
    Part("provider faults, every byte", "tests/provider_faults"),
    Part("state machine", "tests/state_machine", ("PERDURE_EXAMPLES",)),
    Part("crash points", "tests/crash", ("PERDURE_PAIRS",)),
    Part("power loss", "tests/power"),
    Part(
        "many processes",
        "tests/many_processes",
        ("PERDURE_PROCESSES", "PERDURE_SECONDS"),
        workers="0",
    ),
    Part("upgrade museum", "tests/museum"),
)


def main() -> int:
    asked = {name: os.environ.get(name, value) for name, value in LONG.items()}
    failed = 0
    for part in PARTS:
        failed += run(part, asked)
    return 1 if failed else 0


def run(part: Part, asked: Mapping[str, str]) -> bool:
    """Whether it failed."""
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", "-n", part.workers]
    ran = subprocess.run(
        [*command, part.tests],
        cwd=ROOT,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - started
    figures = " ".join(
        f"{name.removeprefix('PERDURE_').lower()}={asked[name]}" for name in part.says
    )
    print(f"{part.name:<28} {outcome(ran.stdout):<28} {took:7.0f} s  {figures}", flush=True)
    if ran.returncode != 0:
        print(ran.stdout + ran.stderr)
    return ran.returncode != 0


def outcome(printed: str) -> str:
    """The counts of pytest's last line."""
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", printed)
    return ", ".join(counts) or "nothing ran"


if __name__ == "__main__":
    sys.exit(main())
