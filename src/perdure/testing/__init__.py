"""What a test needs around the runtime: a scripted model, a clock that stands still, known ids.

And the runtime itself on virtual time, from a seed: `run_seed`. See docs/simulation.md.
"""

from perdure.testing.manual_clock import ManualClock
from perdure.testing.scripted_model import (
    Pause,
    ScriptedModel,
    StreamError,
    failure,
    invalid_call,
    pause,
    reasoning,
    text,
    texts_of,
    tool_call,
)
from perdure.testing.seeded_ids import SeededIds
from perdure.testing.simulation import Report, run_seed
from perdure.testing.virtual_clock import VirtualClock
from perdure.testing.virtual_loop import DeadlockError, VirtualLoop
from perdure.testing.witness import Violation

__all__ = [
    "DeadlockError",
    "ManualClock",
    "Pause",
    "Report",
    "ScriptedModel",
    "SeededIds",
    "StreamError",
    "Violation",
    "VirtualClock",
    "VirtualLoop",
    "failure",
    "invalid_call",
    "pause",
    "reasoning",
    "run_seed",
    "text",
    "texts_of",
    "tool_call",
]
