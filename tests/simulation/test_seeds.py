"""The runtime keeps its promises under every interleaving, fault and crash that a seed draws."""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.figures import Figure
from tests.harness.simulation.simulation import run_seed
from tests.requirements import requirement

SEEDS: Final = int(os.environ.get("PERDURE_SEEDS", "1000"))
STEPS: Final = int(os.environ.get("PERDURE_STEPS", "200"))
CHUNK: Final = 5
REGRESSIONS: Final = Path(__file__).with_name("regressions.txt")


def regressions() -> list[tuple[int, int]]:
    """Seeds that once found a defect, with the number of steps they were found with."""
    lines = (line.partition("#")[0].split() for line in REGRESSIONS.read_text().splitlines())
    return [(int(line[0]), int(line[1])) for line in lines if line]


@requirement("S12", "S30", "S66", "S67", "S69", "S129")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_promises_hold_whatever_happens(first: int, figure: Figure) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        report = run_seed(seed, steps=STEPS)
        assert report.ok, f"\n{report}"
        figure("simulated seeds", 1)
        figure("simulated steps", report.steps)


@pytest.mark.parametrize(("seed", "steps"), regressions())
def test_a_seed_that_found_a_defect_stays_quiet(seed: int, steps: int) -> None:
    report = run_seed(seed, steps=steps)
    assert report.ok, f"\n{report}"
