"""The disk fails at any one action: every caller gets a true answer, and none waits for ever.

The first such action fails, then the second, and so on, until a whole run meets no fault. A disk
error passes at once. A disk that is full or read-only stays so until the fault is lifted.
"""

import asyncio
import errno
from collections.abc import Awaitable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import apsw
import pytest

from perdure.ports import DatabaseError
from perdure.runtime.app.runtime import Runtime
from perdure.schema.errors import StorageError
from perdure.schema.ids import MessageID, SessionID
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from tests.figures import Figure
from tests.harness.faults import disk_image
from tests.harness.faults.recording_vfs import Action, Fault, Mark, Operation, RecordingVfs
from tests.power import images, workload

ONE: Final = SessionID("ses_one")
PROMPTS: Final = [MessageID(f"msg_{number}") for number in range(3)]
LOG_PAGES_MAX: Final = 8
FAULTS: Final[list[tuple[Action, int]]] = [
    ("read", errno.EIO),
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("write", errno.EROFS),
    ("sync", errno.EIO),
    ("sync", errno.ENOSPC),
    ("truncate", errno.EIO),
    ("truncate", errno.EROFS),
    ("open", errno.EIO),
    ("open", errno.EROFS),
]
each_fault = pytest.mark.parametrize(
    ("action", "code"), FAULTS, ids=[f"{action} {errno.errorcode[code]}" for action, code in FAULTS]
)


@each_fault
async def test_a_disk_that_fails_at_any_action_loses_nothing_and_is_used_again(
    action: Action, code: int, figure: Figure
) -> None:
    faults = 0
    for fault in one_after_the_other(action, code):
        with images.place() as directory:
            async with asyncio.timeout(20):
                await run(directory, fault)
        faults += fault.met
    assert faults > 0
    figure("disk faults", faults)


@each_fault
async def test_a_first_start_on_a_failing_disk_is_refused_and_the_next_one_succeeds(
    action: Action, code: int, figure: Figure
) -> None:
    faults = 0
    for fault in one_after_the_other(action, code):
        with images.place() as directory:
            path = directory / "p.db"
            with RecordingVfs(f"{directory}/") as disk:
                disk.fault = fault
                refused = refusal_of_start(path)
            assert refused is None or is_clear(refused, path)
            await images.examine(path, set())
        faults += fault.met
    assert faults > 0
    figure("disk faults", faults)


def one_after_the_other(action: Action, code: int) -> Iterator[Fault]:
    """A fault at the first action, at the second, and so on, until one is not met any more."""
    for number in count(1):
        fault = Fault(action, number, code, lasts=code != errno.EIO)
        yield fault
        if not fault.met:
            return


async def run(directory: Path, fault: Fault) -> None:
    """Work while the fault is in force, then again without it, on the same database."""
    path = directory / "p.db"
    content, operations = migrated()
    path.write_bytes(content)
    with RecordingVfs(f"{directory}/") as disk:
        disk.operations.extend(operations)
        disk.fault = fault
        async with (
            await opened(path, disk) as database,
            workload.runtime_on(database, directory) as runtime,
        ):
            failures = await struggle(runtime, disk)
            assert all(is_clear(failure, path) for failure in failures), failures
            struck = len(disk.operations)
            disk.fault = None
            assert await struggle(runtime, disk) == []
    await images.examine(path, set(PROMPTS))
    for cut in (struck, len(disk.operations)):
        await examine_after_power_loss(disk.operations[:cut], directory / f"{cut}", fault)


@cache
def migrated() -> tuple[bytes, list[Operation]]:
    """A new database, and how it came to be: all runs begin with the same."""
    with images.place() as directory:
        with RecordingVfs(f"{directory}/") as disk:
            migrate.migrate(str(directory / "p.db"))
        return (directory / "p.db").read_bytes(), disk.operations


async def opened(path: Path, disk: RecordingVfs) -> SqliteDatabase:
    """The database; a failing disk may have to be asked for it twice."""
    try:
        database = SqliteDatabase(str(path))
    except StorageError:
        disk.fault = None
        database = SqliteDatabase(str(path))
    await workload.keep_log_short(database, LOG_PAGES_MAX)
    return database


def refusal_of_start(path: Path) -> BaseException | None:
    try:
        migrate.migrate(str(path))
    except DatabaseError as error:
        return error
    except apsw.Error:
        # While closing, when all was done; SQLite itself would say nothing. See RecordingVfs.
        return None
    return None


async def struggle(runtime: Runtime, disk: RecordingVfs) -> list[BaseException]:
    """Everything that several clients want, whatever befalls each; what they were told."""
    told = [await outcome(runtime.sessions.create(id=ONE))]
    if told == [None]:
        admissions = (workload.admit(runtime, ONE, prompt, disk.mark) for prompt in PROMPTS)
        told += await asyncio.gather(*map(outcome, admissions))
        await runtime.sessions.exists(ONE)
        for agent in ("plan", "build"):
            told.append(await outcome(runtime.sessions.switch_agent(ONE, agent)))
    return [failure for failure in told if failure is not None]


async def outcome(work: Awaitable[object]) -> BaseException | None:
    try:
        await work
    except DatabaseError as error:
        return error
    return None


async def examine_after_power_loss(
    operations: list[Operation], directory: Path, fault: Fault
) -> None:
    directory.mkdir()
    chance = Random(f"{fault.action} {fault.number} {fault.code}")
    for name, content in disk_image.after_power_loss(operations, chance).items():
        (directory / name).write_bytes(content)
    await images.examine(directory / "p.db", marks(operations))


def marks(operations: list[Operation]) -> set[str]:
    return {operation.text for operation in operations if isinstance(operation, Mark)}


def is_clear(failure: BaseException, path: Path) -> bool:
    """It names the file and the remedy, and clients are told so."""
    return isinstance(failure, StorageError) and str(path) in str(failure) and ". " in str(failure)
