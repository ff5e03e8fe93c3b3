"""Testing tools for programs built on Perdure: a scripted model, a manual clock, known ids.

A `ScriptedModel` answers what a test wrote down and remembers what it was asked, a `ManualClock`
stands still until the test moves it, `SeededIds` are the same in every run, and a
`FaultyProvider` is a model server on a real socket that goes wrong where it is told to.
"""

from perdure.testing.faulty_provider import FaultyProvider, ProviderRequest
from perdure.testing.manual_clock import ManualClock
from perdure.testing.provider_answer import (
    Close,
    Complete,
    ProviderAnswer,
    Reset,
    Stall,
    chat_stream,
)
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
    "Close",
    "Complete",
    "FaultyProvider",
    "ManualClock",
    "Pause",
    "ProviderAnswer",
    "ProviderRequest",
    "Reset",
    "ScriptedModel",
    "SeededIds",
    "Stall",
    "StreamError",
    "chat_stream",
    "failure",
    "invalid_call",
    "pause",
    "reasoning",
    "text",
    "texts_of",
    "tool_call",
]
