"""Draws for steps: a Session, a prompt, a delivery. The seed decides every choice."""

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
    """Mostly a Session that a client created; now and then a child of one."""
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
    """The pending requests, after a short wait for one; mostly there are none."""
    ledger = clients.machine.ledger
    for _ in range(_WAITS_MAX):
        if clients.machine.active() and not ledger.pending():
            await asyncio.sleep(_WAIT_SECONDS)
    return ledger.pending()


async def running(clients: Clients) -> list[tuple[Process, SessionID]]:
    """What runs, and where; if nothing does, a client sends a prompt first."""
    if not clients.machine.active():
        prompt = clients.write(some_session(clients), some_delivery(clients))
        await clients.send(clients.machine.some(), prompt)
    return clients.machine.active()
