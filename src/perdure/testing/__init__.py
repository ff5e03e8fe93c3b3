"""Tools to test programs that are built on Perdure; see docs/howto/testing.md.

`open_host` opens a real host on temporary directories with a `ScriptedModel`, which gives the
answers that a test wrote and keeps the requests. A `ManualClock` moves only when the test moves it,
`SeededIds` are the same in every run. A `FaultyProvider` is a model server on a real socket that
fails where a test wants it to. `perdure.testing.pytest_plugin` offers fixtures for pytest.
"""

from perdure.testing.faulty_provider import FaultyProvider, ProviderRequest
from perdure.testing.host import open_blocking_host, open_host
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
    "open_blocking_host",
    "open_host",
    "pause",
    "reasoning",
    "text",
    "texts_of",
    "tool_call",
]
