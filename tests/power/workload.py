"""The workload of the disk tests: Sessions created, prompts admitted together, turns recorded.

It goes through the Sessions and the EventStore of a composed runtime, and it is the same each time.
The write-ahead log is kept so short that it is checkpointed and begun anew all the time. A
callback gets every acknowledged admission, at the moment it is acknowledged.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from perdure.host import environment
from perdure.host.process_locks import SingleProcess
from perdure.ports import Transaction
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.prompt import PromptInput
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ManualClock, SeededIds
from tests.fixtures import LOCATION, Facts

LOG_PAGES_MAX: Final = 24
_TOGETHER: Final = 4
_LONG: Final = "a long story, " * 400

Acknowledged = Callable[[MessageID], None]


@asynccontextmanager
async def runtime_on(database: SqliteDatabase, place: Path) -> AsyncGenerator[Runtime]:
    """A composed runtime whose time stands still and whose ids are known."""
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(place)}),
        data_dir=str(place),
        default_directory=str(place),
    )
    clock = ManualClock()
    foundations = Platform(
        database=database, processes=SingleProcess(), clock=clock, ids=SeededIds(clock=clock)
    )
    async with compose(settings, foundations, str(place / "p.db")) as runtime:
        yield runtime


async def keep_log_short(database: SqliteDatabase, pages_max: int = LOG_PAGES_MAX) -> None:
    await database.write(lambda tx: tx.execute(f"PRAGMA wal_autocheckpoint = {pages_max}"))


async def sync_never(database: SqliteDatabase) -> None:
    """What must not be: the setting that our promise rests on, taken back."""

    async def job(tx: Transaction) -> None:
        # It cannot be changed inside of a transaction.
        await tx.execute("COMMIT; PRAGMA synchronous = OFF; BEGIN IMMEDIATE")

    await database.write(job)


async def perform(runtime: Runtime, rounds: int, acknowledged: Acknowledged) -> None:
    for number in range(rounds):
        session_id = SessionID(f"ses_{number}")
        await runtime.sessions.create(id=session_id)
        ids = [MessageID(f"msg_{number}_{prompt}") for prompt in range(_TOGETHER)]
        async with asyncio.TaskGroup() as group:
            for message_id in ids:
                group.create_task(admit(runtime, session_id, message_id, acknowledged))
        await answer(runtime, session_id, ids[0])
        await runtime.sessions.switch_agent(session_id, "plan")


async def admit(
    runtime: Runtime, session_id: SessionID, message_id: MessageID, acknowledged: Acknowledged
) -> None:
    text = _LONG if message_id.endswith("1") else "hello"
    receipt = await runtime.sessions.prompt(
        session_id, PromptInput(text=text), id=message_id, resume=False
    )
    acknowledged(receipt.id)


async def answer(runtime: Runtime, session_id: SessionID, prompt: MessageID) -> None:
    """One turn as a run records it: promoted, begun, said, ended."""
    facts = Facts(session_id)
    step = f"{prompt}_answer"
    said = facts.text(step, "text-0", "an answer")
    for batch in ([facts.promoted(prompt)], [facts.step(step), *said], [facts.ended(step)]):
        await runtime.store.append(session_id, batch, location=LOCATION, running=True)
