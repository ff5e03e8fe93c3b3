"""What a test needs around the runtime: a scripted model, a clock that stands still, known ids."""

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

__all__ = [
    "ManualClock",
    "Pause",
    "ScriptedModel",
    "SeededIds",
    "StreamError",
    "failure",
    "invalid_call",
    "pause",
    "reasoning",
    "text",
    "texts_of",
    "tool_call",
]
