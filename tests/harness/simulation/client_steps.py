"""Steps of clients: what they send, change, ask for, stop and read.

The table of all steps is in `steps`.
"""

import asyncio
from contextlib import suppress
from typing import Final, cast

from msgspec import UNSET

from perdure.core.session import omission
from perdure.schema import codec
from perdure.schema.approval.permission import Reply
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.recovery import Decision
from tests.harness.simulation.clients import Clients
from tests.harness.simulation.draws import (
    earlier_prompt,
    running,
    some_delivery,
    some_session,
    waited_for,
    waiting_prompt,
)
from tests.harness.simulation.machine import MODELS, Answer

_MESSAGE: Final = cast("type[SessionMessage]", SessionMessage)
_SESSIONS_MAX: Final = 3
"""By creation; one more by a fork."""
_FORK_EVENTS_MAX: Final = 60
_FINISH_SECONDS_MAX: Final = 1.0
_CALLBACKS_MAX: Final = 8
_BACK_MAX: Final = 12
"""How many messages a revert goes back at most."""
_AGENTS: Final = ("build", "plan", "short", "nobody")


async def create(clients: Clients) -> None:
    if len(clients.sessions) < _SESSIONS_MAX:
        await clients.create(clients.machine.some())
    else:
        await clients.create_again(clients.machine.some(), some_session(clients))


async def steer(clients: Clients) -> None:
    await clients.send(clients.machine.some(), clients.write(some_session(clients), "steer"))


async def queue(clients: Clients) -> None:
    await clients.send(clients.machine.some(), clients.write(some_session(clients), "queue"))


async def leave_waiting(clients: Clients) -> None:
    """Admit a prompt without asking for a run."""
    prompt = clients.write(some_session(clients), some_delivery(clients))
    await clients.send(clients.machine.some(), prompt, resume=False)


async def send_again(clients: Clients) -> None:
    if (prompt := earlier_prompt(clients)) is not None:
        await clients.send(clients.machine.some(), prompt)


async def send_other_body(clients: Clients) -> None:
    prompt = earlier_prompt(clients)
    if prompt is None or prompt.receipt is None:
        return
    # What a revert took away is no longer used.
    gone = clients.machine.ledger.reverted_since(prompt.session_id, prompt.receipt.admitted_seq)
    if not gone:
        await clients.send_other(clients.machine.some(), prompt)


async def burst(clients: Clients) -> None:
    """Several clients at once, two of them with the same prompt."""
    count = clients.machine.chance.randint(2, 5)
    prompts = [clients.write(some_session(clients), some_delivery(clients)) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        for prompt in (*prompts, prompts[0]):
            group.create_task(clients.send(clients.machine.some(), prompt))


async def interrupt(clients: Clients) -> None:
    """Interrupt a Session, mostly one that runs, between two of its callbacks."""
    found = await running(clients) if clients.machine.chance.random() < 0.8 else []
    if not found:
        await clients.interrupt(clients.machine.some(), some_session(clients))
        return
    process, session_id = clients.machine.chance.choice(found)
    await asyncio.sleep(clients.machine.chance.choice((0.0, 0.0, 0.01, 0.1, 0.5)))
    if process not in clients.machine.processes or clients.machine.chance.random() < 0.3:
        process = clients.machine.some()
    await clients.interrupt(process, session_id)


async def interrupt_a_good_end(clients: Clients) -> None:
    """Interrupt right after a tool succeeded, before that is recorded."""
    machine = clients.machine
    try:
        async with asyncio.timeout(_FINISH_SECONDS_MAX if await running(clients) else 0):
            effect = await machine.witness.next_finish()
    except TimeoutError:
        return
    for process, session_id in machine.active():
        if (process.name, session_id) == (effect.process, effect.session_id):
            await clients.interrupt(process, session_id)


async def prompt_at_the_end(clients: Clients) -> None:
    """Send a prompt right after a step has ended, when the run may be about to end."""
    machine = clients.machine
    try:
        async with asyncio.timeout(_FINISH_SECONDS_MAX if await running(clients) else 0):
            session_id = await machine.witness.next_end()
    except TimeoutError:
        return
    for _ in range(machine.chance.randint(0, _CALLBACKS_MAX)):
        await asyncio.sleep(0)
    await clients.send(machine.some(), clients.write(session_id, some_delivery(clients)))


async def interrupt_and_prompt(clients: Clients) -> None:
    session_id = some_session(clients)
    process = clients.machine.some()
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.interrupt(process, session_id))
        group.create_task(clients.send(process, clients.write(session_id, some_delivery(clients))))


async def answer_permission(clients: Clients) -> None:
    reply: Reply = clients.machine.chance.choice(("once", "once", "always", "reject"))
    for process, session_id in clients.machine.active():
        await clients.answer(process, session_id, reply)


async def answer_question(clients: Clients) -> None:
    for process, session_id in clients.machine.active():
        give = clients.machine.chance.random() < 0.8
        await clients.answer_question(process, session_id, give=give)


async def answer_elsewhere(clients: Clients) -> None:
    """Answer a pending request through another process than the one that waits."""
    reply: Reply = clients.machine.chance.choice(("once", "once", "always", "reject"))
    for session_id in {row.request.session_id: None for row in await waited_for(clients)}:
        await clients.answer(clients.machine.some(), session_id, reply)
        await clients.answer_question(clients.machine.some(), session_id, give=reply != "reject")


async def compact(clients: Clients) -> None:
    """Compact a Session, after a long prompt: mostly there would be too little to condense."""
    session_id = some_session(clients)
    if clients.machine.chance.random() < 0.5:
        await clients.send(
            clients.machine.some(), clients.write(session_id, some_delivery(clients), long=True)
        )
    await clients.compact(clients.machine.some(), session_id)


async def exclude(clients: Clients) -> None:
    """Exclude a message or one of its results from what the model is sent, or restore it."""
    chance, session_id = clients.machine.chance, some_session(clients)
    said = clients.machine.ledger.messages(session_id)
    if not said:
        return
    message = chance.choice(said[-_BACK_MAX:]).message()
    calls = [part.id for part in omission.calls_of(message)]
    call = chance.choice(calls) if calls and chance.random() < 0.6 else UNSET
    excluded = chance.random() < 0.7
    process = clients.machine.some()
    clients.machine.trace.say(f"{process.name} exclude {message.id} {call} {excluded}")
    # What the model must be told cannot be excluded, and a revert may have been quicker.
    with suppress(InvalidRequestError, MessageNotFoundError):
        reply = await clients.machine.ask(
            process,
            lambda r: r.changes.exclude(session_id, message.id, excluded=excluded, call_id=call),
        )
        if isinstance(reply, Answer):
            shown = codec.decode(_MESSAGE, reply.value)
            if omission.is_excluded(shown, call) != excluded:
                clients.machine.witness.accuse("S36", f"{message.id} is not as it was asked for")


async def stage_revert(clients: Clients) -> None:
    session_id = some_session(clients)
    if said := clients.machine.ledger.messages(session_id):
        message = clients.machine.chance.choice(said[-_BACK_MAX:])
        await clients.stage(clients.machine.some(), session_id, message.id)


async def end_revert(clients: Clients) -> None:
    session_id = some_session(clients)
    commit = clients.machine.chance.random() < 0.7
    await clients.end_revert(clients.machine.some(), session_id, commit=commit)


async def decide_recovery(clients: Clients) -> None:
    """Decide about a request that a crash left."""
    for session_id in clients.machine.ledger.undecided():
        decision: Decision = clients.machine.chance.choice(("retry", "retry", "abandon"))
        await clients.decide(clients.machine.some(), session_id, decision)


async def revise(clients: Clients) -> None:
    """Change the text or the delivery of a pending prompt."""
    if (waiting := waiting_prompt(clients)) is None:
        return
    text = clients.machine.chance.choice((None, f"{waiting.id}, revised"))
    delivery = clients.machine.chance.choice((None, some_delivery(clients)))
    await clients.revise(clients.machine.some(), waiting, text=text, delivery=delivery)


async def cancel(clients: Clients) -> None:
    if (waiting := waiting_prompt(clients)) is not None:
        await clients.cancel(clients.machine.some(), waiting)


async def reorder(clients: Clients) -> None:
    """Reorder the pending prompts of a Session, or some of them."""
    if (one := waiting_prompt(clients)) is None:
        return
    all_ids = [w.id for w in clients.machine.ledger.waiting() if w.session_id == one.session_id]
    order = clients.machine.chance.sample(all_ids, clients.machine.chance.randint(1, len(all_ids)))
    await clients.reorder(clients.machine.some(), one.session_id, order)


async def label(clients: Clients) -> None:
    title = f"title {clients.machine.chance.randint(1, 3)}"
    await clients.label(clients.machine.some(), some_session(clients), title)


async def fork(clients: Clients) -> None:
    """Fork a Session that is not too long, because all of it is copied."""
    session_id = some_session(clients)
    short = clients.machine.ledger.latest(session_id) <= _FORK_EVENTS_MAX
    if short and len(clients.sessions) <= _SESSIONS_MAX:
        await clients.fork(clients.machine.some(), session_id)


async def wait(clients: Clients) -> None:
    await clients.wait(clients.machine.some(), some_session(clients))


async def switch_agent(clients: Clients) -> None:
    agent = clients.machine.chance.choice(_AGENTS)
    await clients.switch_agent(clients.machine.some(), some_session(clients), agent)


async def switch_model(clients: Clients) -> None:
    model = clients.machine.chance.choice((*MODELS, *MODELS, "missing"))
    await clients.switch_model(clients.machine.some(), some_session(clients), model)


async def follow(clients: Clients) -> None:
    session_id = some_session(clients)
    latest = clients.machine.ledger.latest(session_id)
    clients.follow(session_id, clients.machine.chance.randint(-1, max(0, latest)))


async def page_through(clients: Clients) -> None:
    session_id = some_session(clients)
    latest = clients.machine.ledger.latest(session_id)
    after = clients.machine.chance.randint(-1, max(0, latest) + 3)
    await clients.page_through(clients.machine.some(), session_id, after)


async def read_messages(clients: Clients) -> None:
    order = clients.machine.chance.choice(("asc", "desc"))
    await clients.read_messages(clients.machine.some(), some_session(clients), order)


async def pass_time(clients: Clients) -> None:
    await asyncio.sleep(clients.machine.chance.choice((0.01, 0.1, 0.8)))
