"""What can happen in a simulation, each thing one step, drawn by its weight.

A new capability adds its steps here: a coroutine function that does something through
`Simulation.clients` or `Simulation.machine`, and a line in `STEPS`. What must hold afterwards
is a checker's concern.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from perdure.schema.prompt import Delivery
from perdure.testing.simulated_clients import SentPrompt
from perdure.testing.simulated_machine import MODELS, Process

if TYPE_CHECKING:
    from perdure.testing.simulation import Simulation
