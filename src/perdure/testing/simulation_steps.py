"""What can happen in a simulation, each thing one step, drawn by its weight.

A new capability adds its steps here: a coroutine function that acts through the clients or their
machine, and a line in `STEPS`. What must hold afterwards is a checker's concern.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

from perdure.schema.ids import SessionID
from perdure.schema.permission import Reply
from perdure.schema.prompt import Delivery
from perdure.schema.recovery import Decision
from perdure.store.pending_table import PendingRow
from perdure.testing.simulated_clients import Clients, SentPrompt
from perdure.testing.simulated_machine import MODELS

Step = Callable[[Clients], Awaitable[None]]

_SESSIONS_MAX: Final = 3
_PROCESSES_MAX: Final = 3
_DAY_SECONDS: Final = 86_400
_FINISH_SECONDS_MAX: Final = 1.0
_BACK_MAX: Final = 12
"""How many messages somebody goes back at most."""
_OPENING_SECONDS: Final = 1.5
_WAITS_MAX: Final = 10
_WAIT_SECONDS: Final = 0.05
_AGENTS: Final = ("build", "plan", "short", "nobody")


async def create(clients: Clients) -> None:
    if len(clients.sessions) < _SESSIONS_MAX:
        await clients.create(clients.machine.some())
    else:
        await clients.create_again(clients.machine.some(), _session(clients))


async def steer(clients: Clients) -> None:
    await clients.send(clients.machine.some(), clients.write(_session(clients), "steer"))


async def queue(clients: Clients) -> None:
    await clients.send(clients.machine.some(), clients.write(_session(clients), "queue"))


async def leave_waiting(clients: Clients) -> None:
    """A prompt that nobody asks to be run yet."""
    prompt = clients.write(_session(clients), _delivery(clients))
    await clients.send(clients.machine.some(), prompt, resume=False)


async def send_again(clients: Clients) -> None:
    if (prompt := _earlier(clients)) is not None:
        await clients.send(clients.machine.some(), prompt)


async def send_other_body(clients: Clients) -> None:
    prompt = _earlier(clients)
    if prompt is None or prompt.receipt is None:
        return
    # What a revert took away is no longer used.
    gone = clients.machine.ledger.reverted_since(prompt.session_id, prompt.receipt.admitted_seq)
    if not gone:
        await clients.send_other(clients.machine.some(), prompt)


async def burst(clients: Clients) -> None:
    """Several clients at once, two of them with the same prompt."""
    count = clients.machine.chance.randint(2, 5)
    prompts = [clients.write(_session(clients), _delivery(clients)) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        for prompt in (*prompts, prompts[0]):
            group.create_task(clients.send(clients.machine.some(), prompt))


async def interrupt(clients: Clients) -> None:
    """Something that runs, if anything does: at a moment between two callbacks of it."""
    running = clients.machine.active()
    if not running or clients.machine.chance.random() < 0.1:
        await clients.interrupt(clients.machine.some(), _session(clients))
        return
    process, session_id = clients.machine.chance.choice(running)
    await asyncio.sleep(clients.machine.chance.choice((0.0, 0.0, 0.01, 0.1, 0.5)))
    if process not in clients.machine.processes or clients.machine.chance.random() < 0.3:
        process = clients.machine.some()
    await clients.interrupt(process, session_id)


async def interrupt_a_good_end(clients: Clients) -> None:
    """Just when a tool has done its work, and before that is recorded."""
    machine = clients.machine
    try:
        async with asyncio.timeout(_FINISH_SECONDS_MAX if machine.active() else 0):
            effect = await machine.witness.next_finish()
    except TimeoutError:
        return
    for process, session_id in machine.active():
        if (process.name, session_id) == (effect.process, effect.session_id):
            await clients.interrupt(process, session_id)


async def interrupt_and_prompt(clients: Clients) -> None:
    session_id = _session(clients)
    process = clients.machine.some()
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.interrupt(process, session_id))
        group.create_task(clients.send(process, clients.write(session_id, _delivery(clients))))


async def answer_permission(clients: Clients) -> None:
    reply: Reply = clients.machine.chance.choice(("once", "once", "always", "reject"))
    for process, session_id in clients.machine.active():
        await clients.answer(process, session_id, reply)


async def answer_question(clients: Clients) -> None:
    for process, session_id in clients.machine.active():
        give = clients.machine.chance.random() < 0.8
        await clients.answer_question(process, session_id, give=give)


async def answer_elsewhere(clients: Clients) -> None:
    """Somebody speaks to whichever process they reach, and not to the one that waits."""
    reply: Reply = clients.machine.chance.choice(("once", "once", "always", "reject"))
    for session_id in {row.request.session_id: None for row in await _waited_for(clients)}:
        await clients.answer(clients.machine.some(), session_id, reply)
        await clients.answer_question(clients.machine.some(), session_id, give=reply != "reject")


async def crash_while_waited_for(clients: Clients) -> None:
    """The process dies in which somebody waits for a person, perhaps just as the word is said."""
    machine = clients.machine
    waited = await _waited_for(clients)
    victims = [p for p in machine.processes if any(row.process == p.name for row in waited)]
    if not victims:
        return
    victim = machine.chance.choice(victims)
    session_id = next(row.request.session_id for row in waited if row.process == victim.name)
    speaks = machine.chance.choice([victim, machine.some()])
    async with asyncio.TaskGroup() as group:
        group.create_task(machine.kill(victim, after=machine.chance.randint(0, 30)))
        group.create_task(clients.answer(speaks, session_id, "once"))
        group.create_task(clients.answer_question(speaks, session_id, give=True))


async def compact(clients: Clients) -> None:
    """Mostly there is too little to condense; so somebody has said a lot before."""
    session_id = _session(clients)
    if clients.machine.chance.random() < 0.5:
        await clients.send(
            clients.machine.some(), clients.write(session_id, _delivery(clients), long=True)
        )
    await clients.compact(clients.machine.some(), session_id)


async def stage_revert(clients: Clients) -> None:
    session_id = _session(clients)
    if said := clients.machine.ledger.messages(session_id):
        message = clients.machine.chance.choice(said[-_BACK_MAX:])
        await clients.stage(clients.machine.some(), session_id, message.id)


async def end_revert(clients: Clients) -> None:
    session_id = _session(clients)
    commit = clients.machine.chance.random() < 0.7
    await clients.end_revert(clients.machine.some(), session_id, commit=commit)


async def decide_recovery(clients: Clients) -> None:
    """Somebody looks what a crash left, and decides."""
    for session_id in clients.machine.ledger.undecided():
        decision: Decision = clients.machine.chance.choice(("retry", "retry", "abandon"))
        await clients.decide(clients.machine.some(), session_id, decision)


async def switch_agent(clients: Clients) -> None:
    agent = clients.machine.chance.choice(_AGENTS)
    await clients.switch_agent(clients.machine.some(), _session(clients), agent)


async def switch_model(clients: Clients) -> None:
    model = clients.machine.chance.choice((*MODELS, *MODELS, "missing"))
    await clients.switch_model(clients.machine.some(), _session(clients), model)


async def jump_clock(clients: Clients) -> None:
    days = clients.machine.chance.choice((-400, -1, 1, 1, 2))
    clients.machine.trace.say(f"the clock jumps by {days} days")
    clients.machine.clock.jump(days * _DAY_SECONDS)


async def nudge_clock(clients: Clients) -> None:
    """Backwards, by less than a date."""
    clients.machine.trace.say("the clock is set back by ten seconds")
    clients.machine.clock.jump(-10)


async def change_repository(clients: Clients) -> None:
    """The project becomes a repository, or stops being one: its environment changes."""
    clients.machine.trace.say("the repository comes or goes")
    clients.machine.toggle_repository()


async def change_instructions(clients: Clients) -> None:
    """Somebody writes, rewrites or removes the project's instruction file."""
    count = clients.machine.chance.choice((0, *range(1, 40)))
    clients.machine.trace.say(f"the instructions have {count} sentences")
    clients.machine.write_instructions("Take care. " * count)


async def lose_project(clients: Clients) -> None:
    """The project's directory is away for a while; what could not run is asked for again later."""
    machine = clients.machine
    machine.trace.say("the project is gone")
    os.rename(machine.project, f"{machine.project}.away")
    machine.weather.outage = True
    if machine.chance.random() < 0.5:
        await machine.kill(machine.some(), after=0)
        await machine.boot()
    await clients.send(machine.some(), clients.write(_session(clients), _delivery(clients)))
    await asyncio.sleep(machine.chance.choice((0.0, 0.1, 1.0)))
    os.rename(f"{machine.project}.away", machine.project)
    # Whoever was looking has found out by now.
    await asyncio.sleep(_OPENING_SECONDS)
    machine.weather.outage = False
    machine.trace.say("the project is back")
    for session_id in clients.sessions:
        machine.witness.excuse(session_id)


async def second_owner(clients: Clients) -> None:
    if len(clients.machine.processes) < _PROCESSES_MAX:
        await clients.machine.boot()


async def crash(clients: Clients) -> None:
    after = clients.machine.chance.choice((0, 1, 2, 3, 5, 8, 20, 60))
    await clients.machine.kill(clients.machine.some(), after=after)


async def crash_while_asked(clients: Clients) -> None:
    """The answer to a prompt may be lost with the process that admitted it."""
    process = clients.machine.some()
    prompt = clients.write(_session(clients), _delivery(clients))
    after = clients.machine.chance.randint(1, 12)
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.send(process, prompt))
        group.create_task(clients.machine.kill(process, after=after))


async def crash_everything(clients: Clients) -> None:
    for process in tuple(clients.machine.processes):
        await clients.machine.kill(process, after=clients.machine.chance.randint(0, 10))


async def orphan(clients: Clients) -> None:
    """A process that runs something is taken for dead, and another one is asked to go on."""
    machine = clients.machine
    running = machine.active()
    if len(machine.processes) < 2 or not running:
        return
    victim, session_id = machine.chance.choice(running)
    heir = machine.chance.choice([item for item in machine.processes if item is not victim])
    prompt = clients.write(session_id, _delivery(clients))
    async with asyncio.TaskGroup() as group:
        group.create_task(machine.orphan(victim, after=machine.chance.randint(10, 200)))
        group.create_task(clients.send(heir, prompt))


async def close(clients: Clients) -> None:
    await clients.machine.close(clients.machine.some())


async def follow(clients: Clients) -> None:
    session_id = _session(clients)
    latest = clients.machine.ledger.latest(session_id)
    clients.follow(session_id, clients.machine.chance.randint(-1, max(0, latest)))


async def page_through(clients: Clients) -> None:
    session_id = _session(clients)
    latest = clients.machine.ledger.latest(session_id)
    after = clients.machine.chance.randint(-1, max(0, latest) + 3)
    await clients.page_through(clients.machine.some(), session_id, after)


async def pass_time(clients: Clients) -> None:
    await asyncio.sleep(clients.machine.chance.choice((0.01, 0.2, 1.5)))


STEPS: Final[tuple[tuple[Step, int], ...]] = (
    (create, 3),
    (steer, 16),
    (queue, 8),
    (leave_waiting, 2),
    (send_again, 5),
    (send_other_body, 3),
    (burst, 4),
    (interrupt, 6),
    (interrupt_a_good_end, 5),
    (interrupt_and_prompt, 3),
    (answer_permission, 3),
    (answer_question, 2),
    (answer_elsewhere, 2),
    (crash_while_waited_for, 2),
    (compact, 4),
    (stage_revert, 3),
    (end_revert, 3),
    (decide_recovery, 4),
    (switch_agent, 3),
    (switch_model, 3),
    (jump_clock, 3),
    (nudge_clock, 1),
    (change_repository, 2),
    (change_instructions, 3),
    (lose_project, 1),
    (second_owner, 5),
    (crash, 5),
    (crash_while_asked, 2),
    (crash_everything, 1),
    (orphan, 4),
    (close, 2),
    (follow, 3),
    (page_through, 3),
    (pass_time, 8),
)
"""Each step, and how often it is drawn."""


def _session(clients: Clients) -> SessionID:
    """Mostly one that somebody made; now and then one that a model set to work."""
    root = clients.machine.chance.choice(clients.sessions)
    if clients.machine.chance.random() < 0.2:
        return clients.machine.chance.choice(clients.machine.ledger.below(root))
    return root


async def _waited_for(clients: Clients) -> list[PendingRow]:
    """What waits for a person, in a moment at the latest; mostly nothing does."""
    ledger = clients.machine.ledger
    for _ in range(_WAITS_MAX):
        if clients.machine.active() and not ledger.pending():
            await asyncio.sleep(_WAIT_SECONDS)
    return ledger.pending()


def _delivery(clients: Clients) -> Delivery:
    return clients.machine.chance.choice(("steer", "queue"))


def _earlier(clients: Clients) -> SentPrompt | None:
    prompts = tuple(clients.prompts.values())
    return clients.machine.chance.choice(prompts) if prompts else None
