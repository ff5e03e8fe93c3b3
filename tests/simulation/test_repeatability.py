"""A seed says everything: the same one gives the same run, here and in any other process."""

import os
import subprocess
import sys

import pytest

from perdure.testing import run_seed
from tests.fixtures import ROOT

SEEDS = (3, 8, 21)


def digest_in_another_process(seed: int, *, hash_seed: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "perdure.testing.simulate", "--seed", str(seed)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return ran.stdout.split()[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_events_and_requests(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.trace == second.trace
    assert first.digest == second.digest
    assert first.events > 50


def test_the_order_of_sets_and_the_process_make_no_difference() -> None:
    here = run_seed(SEEDS[0]).digest
    assert digest_in_another_process(SEEDS[0], hash_seed="1") == here
    assert digest_in_another_process(SEEDS[0], hash_seed="4242") == here


def test_another_seed_is_another_run() -> None:
    assert run_seed(1).digest != run_seed(2).digest


def test_a_run_touches_what_it_is_meant_to_touch() -> None:
    """A simulator that draws nothing of interest would pass every check."""
    lines = [line for seed in range(12) for line in run_seed(seed).trace]
    for word in ("boot", "close", "kill", "orphan", "interrupt", "clock", "repository", "gone"):
        assert any(word in line for line in lines), word
    for fact in ("ContextUpdated", "StepFailed", "ToolSucceeded", "Retried", "ModelSwitched"):
        assert any(line.endswith(fact) for line in lines), fact
    for fact in ("CompactionEnded", "RevertStaged", "RevertCleared", "RevertCommitted"):
        assert any(line.endswith(fact) for line in lines), fact
    for fact in ("ToolProgressed", "TodosUpdated"):
        assert any(line.endswith(fact) for line in lines), fact
    for word in ("give=True", "once for", "crash_while_waited_for", "answer_elsewhere"):
        assert any(word in line for line in lines), word
