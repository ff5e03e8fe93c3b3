"""A process that shares a store with a test: appends on demand, holds a lease, or writes for ever.

Every acknowledged append is printed, so that the test knows what must be there.
"""

import asyncio
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from perdure.host.process_locks import ProcessLocks
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import NO_EVENTS, EventStore
from tests.fixtures import SESSION, Facts, append, opened_store


async def main(data: Path, name: str, task: str) -> None:
    with ProcessLocks(str(data / "processes"), name) as locks:
        async with opened_store(data / "p.db", processes=locks, seed=sum(name.encode())) as store:
            match task:
                case "append":
                    await on_demand(store, SESSION)
                case "hold":
                    await store.database.write(lambda tx: store.leases.hold_within(tx, SESSION))
                    say("held")
                    await asyncio.to_thread(sys.stdin.read)
                case "loop":
                    await for_ever(store)
                case _:
                    raise SystemExit(f"unknown task {task}")


async def on_demand(store: EventStore, session_id: SessionID) -> None:
    """One append for each line of input."""
    facts = Facts(session_id)
    if await store.latest(session_id) == NO_EVENTS:
        await append(store, [facts.created()], session_id)
    say("ready")
    for number in count():
        if not await asyncio.to_thread(sys.stdin.readline):
            return
        await append(store, [facts.admitted(f"msg_child_{number}")], session_id)
        say("done")


async def for_ever(store: EventStore) -> None:
    """Several Sessions written at once, so that commits are shared, until it is killed."""
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(write(store, SessionID(f"ses_{number}")))


async def write(store: EventStore, session_id: SessionID) -> None:
    facts = Facts(session_id)
    appended = await append(store, [facts.created()], session_id)
    for message in numbered(session_id):
        say(f"{session_id} {appended.last_seq}")
        appended = await append(
            store, [facts.admitted(message), facts.told(f"{message}t")], session_id
        )


def numbered(session_id: SessionID) -> Iterator[str]:
    return (f"msg_{session_id}_{number}" for number in count())


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
