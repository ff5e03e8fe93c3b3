"""A thousand random histories, in shards that a test run can spread; the same ones every time.

`PERDURE_EXAMPLES` asks for another number in all, and then for new ones each time; `PERDURE_STEPS`
for longer ones.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.figures import Figure
from tests.requirements import requirement
from tests.state_machine.machine import Sessions

SHARDS: Final = 8
EXAMPLES_DEFAULT: Final = 1_000
"""As Hypothesis counts: those that it could draw to their end. Over a thousand are lived."""
STEPS: Final = int(os.environ.get("PERDURE_STEPS", "22"))
OBJECTS_COLLECTED: Final = 20_000
ASKED: Final = os.environ.get("PERDURE_EXAMPLES")


@pytest.fixture
def calm_collector() -> Iterator[None]:
    """A shard makes its garbage by the example. What was imported before it is none."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_COLLECTED, *thresholds[1:])
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.collect()


@pytest.fixture
def same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis also draws constants of the modules that are loaded, so that what is drawn would
    depend on the tests that ran before in the same process."""
    providers = import_module("hypothesis.internal.conjecture.providers")
    nothing = providers.Constants()
    monkeypatch.setattr(providers, "_get_local_constants", lambda: nothing)


@pytest.mark.usefixtures("calm_collector", "same_draws")
@requirement("S11", "S12", "S69", "S74")
@pytest.mark.timeout(0 if ASKED else 120)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_whatever_is_done_in_whatever_order_every_promise_is_kept(
    shard: int, figure: Figure
) -> None:
    done: Counter[str] = Counter()
    run_state_machine_as_test(
        # Of its own name: what is drawn is drawn from that.
        type(f"Shard{shard}", (Sessions,), {"done": done}),
        settings=settings(
            max_examples=int(ASKED or EXAMPLES_DEFAULT) // SHARDS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=ASKED is None,
            database=None,
            # An example is a whole runtime with its files; drawing is the smaller part of it.
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    figure("state machine histories", done["histories"])
    figure("state machine steps", done["steps"])
