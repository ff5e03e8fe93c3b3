"""What a test needs around the runtime: a scripted model, a clock that stands still, known ids.

A database and a provider that fail when they are told to; see docs/failing.md. And the runtime
itself on virtual time, from a seed: `run_seed`. See docs/simulation.md.
"""

from perdure.testing.faulty_database import (
    DatabaseFault,
    DatabasePlan,
    FaultyDatabase,
    InjectedDatabaseError,
)
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
from perdure.testing.simulation import Report, run_seed
from perdure.testing.virtual_clock import VirtualClock
from perdure.testing.virtual_loop import DeadlockError, VirtualLoop
from perdure.testing.witness import Violation

__all__ = [
    "Close",
    "Complete",
    "DatabaseFault",
    "DatabasePlan",
    "DeadlockError",
    "FaultyDatabase",
    "FaultyProvider",
    "InjectedDatabaseError",
    "ManualClock",
    "Pause",
    "ProviderAnswer",
    "ProviderRequest",
    "Report",
    "Reset",
    "ScriptedModel",
    "SeededIds",
    "Stall",
    "StreamError",
    "Violation",
    "VirtualClock",
    "VirtualLoop",
    "chat_stream",
    "failure",
    "invalid_call",
    "pause",
    "reasoning",
    "run_seed",
    "text",
    "texts_of",
    "tool_call",
]
