"""Steps of the machine: its clock, its project, processes that start, stop and crash.

The table of all steps is in `steps`.
"""

import asyncio
import os
from contextlib import suppress
from typing import Final

from perdure.core import limits
from tests.harness.simulation.clients import Clients
from tests.harness.simulation.draws import running, some_delivery, some_session, waited_for
from tests.support.unreadable import ANYWHERE, PROJECT_FILES, unreadable

_PROCESSES_MAX: Final = 3
_DAY_SECONDS: Final = 86_400
_OPENING_SECONDS: Final = 1.5
_CALL_SECONDS_MAX: Final = 4.0
"""Longer than a process takes to go on with what another one left, and to be answered."""


async def jump_clock(clients: Clients) -> None:
    days = clients.machine.chance.choice((-400, -1, 1, 1, 2))
    clients.machine.trace.say(f"the clock jumps by {days} days")
    clients.machine.clock.jump(days * _DAY_SECONDS)


async def nudge_clock(clients: Clients) -> None:
    """Set the clock back by less than a day."""
    clients.machine.trace.say("the clock is set back by ten seconds")
    clients.machine.clock.jump(-10)


async def change_repository(clients: Clients) -> None:
    """The project becomes a repository, or stops being one: its environment changes."""
    clients.machine.trace.say("the repository comes or goes")
    clients.machine.toggle_repository()


async def change_instructions(clients: Clients) -> None:
    """Write, change or remove the project's instruction file."""
    count = clients.machine.chance.choice((0, *range(1, 40)))
    clients.machine.trace.say(f"the instructions have {count} sentences")
    clients.machine.write_instructions("Take care. " * count)


async def lose_project(clients: Clients) -> None:
    """The project's directory is away for a while; what could not run is asked for again later."""
    machine = clients.machine
    machine.trace.say("the project is gone")
    os.rename(machine.project, f"{machine.project}.away")
    machine.conditions.outage = True
    if machine.chance.random() < 0.5:
        await machine.kill(machine.some(), after=0)
        await machine.boot()
    await clients.send(machine.some(), clients.write(some_session(clients), some_delivery(clients)))
    await asyncio.sleep(machine.chance.choice((0.0, 0.1, 1.0)))
    os.rename(f"{machine.project}.away", machine.project)
    # Processes that were opening the project have failed by now.
    await asyncio.sleep(_OPENING_SECONDS)
    machine.conditions.outage = False
    machine.trace.say("the project is back")
    for session_id in clients.sessions:
        machine.witness.excuse(session_id)


async def hide_path(clients: Clients) -> None:
    """A file or directory that models are told of cannot be looked at for a while."""
    machine = clients.machine
    hidden = machine.chance.choice(machine.told_paths())
    fault = machine.chance.choice([*(PROJECT_FILES if os.path.isfile(hidden.path) else ANYWHERE)])
    machine.trace.say(f"{os.path.basename(hidden.path)} cannot be looked at: {fault}")
    machine.conditions.outage = machine.witness.may_lack_context = True
    with unreadable(hidden.path, PROJECT_FILES[fault], aside=f"{machine.project}.aside"):
        # A boundary that was being made may have looked before.
        await asyncio.sleep(_OPENING_SECONDS)
        with machine.witness.expecting_silence(hidden.subject):
            if machine.chance.random() < 0.3:
                await machine.kill(machine.some(), after=0)
                await machine.boot()
            prompt = clients.write(some_session(clients), some_delivery(clients))
            await clients.send(machine.some(), prompt)
            await asyncio.sleep(machine.chance.choice((0.1, 1.0, 3.0)))
    # First turns that wait for this context have failed by now.
    await asyncio.sleep(_OPENING_SECONDS)
    machine.conditions.outage = machine.witness.may_lack_context = False
    machine.trace.say(f"{os.path.basename(hidden.path)} is as it was")
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
    prompt = clients.write(some_session(clients), some_delivery(clients))
    after = clients.machine.chance.randint(1, 12)
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.send(process, prompt))
        group.create_task(clients.machine.kill(process, after=after))


async def crash_in_calls(clients: Clients) -> None:
    """Each call of a Session brings its process down, and its model makes it again each time."""
    machine = clients.machine
    prompt = clients.write(some_session(clients), "steer")
    machine.conditions.insistent = prompt.session_id
    await clients.send(machine.some(), prompt)
    with suppress(TimeoutError):
        for _ in range(limits.RECOVERY_DEATHS_MAX + 2):
            async with asyncio.timeout(_CALL_SECONDS_MAX):
                while (
                    effect := await machine.witness.next_start()
                ).session_id != prompt.session_id:
                    pass
            victim = next((p for p in machine.processes if p.name == effect.process), None)
            if victim is not None:
                await machine.kill(victim, after=0)
            if not machine.processes:
                await machine.boot()
    machine.conditions.insistent = None


async def crash_everything(clients: Clients) -> None:
    for process in tuple(clients.machine.processes):
        await clients.machine.kill(process, after=clients.machine.chance.randint(0, 10))


async def crash_while_waited_for(clients: Clients) -> None:
    """Kill a process with a pending request, perhaps just as that is answered."""
    machine = clients.machine
    waited = await waited_for(clients)
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


async def orphan(clients: Clients) -> None:
    """A process that runs something is taken for dead, and another one is asked to go on."""
    machine = clients.machine
    if len(machine.processes) < 2:
        await machine.boot()
    if not (found := await running(clients)):
        return
    victim, session_id = machine.chance.choice(found)
    heir = machine.chance.choice([item for item in machine.processes if item is not victim])
    prompt = clients.write(session_id, some_delivery(clients))
    async with asyncio.TaskGroup() as group:
        group.create_task(machine.orphan(victim, after=machine.chance.randint(10, 200)))
        group.create_task(clients.send(heir, prompt))


async def close(clients: Clients) -> None:
    await clients.machine.close(clients.machine.some())
