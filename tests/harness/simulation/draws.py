"""What steps draw: a Session, a prompt, a delivery. Every choice is the seed's."""

import asyncio
from typing import Final

from perdure.schema.ids import SessionID
from perdure.schema.session.prompt import Delivery
from perdure.store.tables.pending_table import PendingRow
from tests.harness.checkers.ledger import Waiting
from tests.harness.simulation.clients import Clients, SentPrompt
from tests.harness.simulation.machine import Process

_WAITS_MAX: Final = 10
_WAIT_SECONDS: Final = 0.05


def some_session(clients: Clients) -> SessionID:
    """Mostly one that somebody made; now and then one that a model set to work."""
    root = clients.machine.chance.choice(clients.sessions)
    if clients.machine.chance.random() < 0.2:
        return clients.machine.chance.choice(clients.machine.ledger.below(root))
    return root


def some_delivery(clients: Clients) -> Delivery:
    return clients.machine.chance.choice(("steer", "queue"))


def waiting_prompt(clients: Clients) -> Waiting | None:
    """A prompt that is still to be promoted, of whichever Session."""
    waiting = clients.machine.ledger.waiting()
    return clients.machine.chance.choice(waiting) if waiting else None


def earlier_prompt(clients: Clients) -> SentPrompt | None:
    prompts = tuple(clients.prompts.values())
    return clients.machine.chance.choice(prompts) if prompts else None


async def waited_for(clients: Clients) -> list[PendingRow]:
    """What waits for a person, in a moment at the latest; mostly nothing does."""
    ledger = clients.machine.ledger
    for _ in range(_WAITS_MAX):
        if clients.machine.active() and not ledger.pending():
            await asyncio.sleep(_WAIT_SECONDS)
    return ledger.pending()


async def running(clients: Clients) -> list[tuple[Process, SessionID]]:
    """What runs, and where; if nothing does, somebody says something first."""
    if not clients.machine.active():
        prompt = clients.write(some_session(clients), some_delivery(clients))
        await clients.send(clients.machine.some(), prompt)
    return clients.machine.active()
