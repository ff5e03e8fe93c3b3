"""Images: what the disk may hold after a power loss, numbered, and whether all promises are kept.

One recording of the workload is cut after each of its operations in turn, lap after lap, and from
each cut one image is drawn. The number says where it is cut and what is drawn, so that
`python -m tests.power.images --image 17` repeats one. `--keep` leaves its files to be looked at.
"""

import argparse
import asyncio
import hashlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from perdure.host.process_locks import SingleProcess
from perdure.ports import DatabaseError, SqlValue
from perdure.schema import codec
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log import projector
from perdure.store.log.event_store import EventStore
from perdure.testing import SeededIds
from tests.fixtures import dump, rows
from tests.harness.faults import disk_image
from tests.harness.faults.recording_vfs import Mark, Operation, RecordingVfs
from tests.power import workload

IMAGES: Final = int(os.environ.get("PERDURE_IMAGES", "1160"))
"""How many are looked at with the tests, one for each operation at least; there is no last one."""
ROUNDS: Final = 7
_MEMORY: Final = "/dev/shm"
_GAPS: Final = """
    SELECT session_id FROM event GROUP BY session_id
    HAVING min(seq) <> 0 OR max(seq) <> count(*) - 1
"""


class BrokenImageError(AssertionError):
    """A promise that an image does not keep."""


class Recording:
    """All that the workload asks of the disk, and the images of it."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self._cuts = disk_image.Cuts(operations)
        self._looked_at: dict[bytes, frozenset[str]] = {}
        """Images that are whole, by the digest of their files, and the admissions in them."""

    def draw(self, number: int) -> tuple[Mapping[str, bytes], set[str]]:
        """The files of image `number`, and what had been acknowledged by then."""
        cut = number % len(self.operations) + 1
        before = self.operations[:cut]
        acknowledged = {operation.text for operation in before if isinstance(operation, Mark)}
        return self._cuts.after_power_loss(cut, Random(f"image {number}")), acknowledged

    def look(self, number: int) -> None:
        """Each that differs is opened once: many cuts leave the same files."""
        files, acknowledged = self.draw(number)
        digest = _digest(files)
        if digest in self._looked_at:
            _require_all(acknowledged, self._looked_at[digest])
            return
        with place() as directory:
            _lay_out(files, directory)
            self._looked_at[digest] = asyncio.run(examine(directory / "p.db", acknowledged))


@cache
def recorded(*, synced: bool = True) -> Recording:
    with place() as directory:
        return Recording(asyncio.run(record(directory, synced=synced)))


async def record(directory: Path, *, synced: bool = True) -> Sequence[Operation]:
    """Perform the workload in an empty directory, from the first migration to the last close."""
    path = str(directory / "p.db")
    with RecordingVfs(f"{directory}/") as disk:
        migrate.migrate(path)
        async with SqliteDatabase(path, inline=True) as database:
            await workload.keep_log_short(database)
            if not synced:
                await workload.sync_never(database)
            async with workload.runtime_on(database, directory) as runtime:
                await workload.perform(runtime, ROUNDS, disk.mark)
    return disk.operations


def check(number: int, *, synced: bool = True, keep: Path | None = None) -> None:
    """Raises BrokenImageError with the promise that image `number` breaks."""
    recording = recorded(synced=synced)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _lay_out(recording.draw(number)[0], keep)
    try:
        recording.look(number)
    except (BrokenImageError, DatabaseError) as error:
        raise BrokenImageError(f"image {number}: {error}") from error


async def examine(path: Path, acknowledged: set[str]) -> frozenset[str]:
    """Open what is there as a start does, and look whether it is whole; the admissions in it."""
    migrate.migrate(str(path))
    async with SqliteDatabase(str(path), inline=True) as database:
        store = EventStore(database, SeededIds(), SingleProcess())
        sound = await database.read(lambda tx: tx.fetch("PRAGMA integrity_check"))
        _require(sound == [("ok",)], f"the file is damaged: {sound}")
        gaps = await database.read(lambda tx: tx.fetch(_GAPS))
        _require(gaps == [], f"sequences with gaps: {gaps}")
        admitted = await _require_admissions(store, acknowledged)
        before = await dump(store)
        await projector.rebuild(database)
        _require(await dump(store) == before, "projections are not what the log makes them")
    return admitted


@contextmanager
def place() -> Generator[Path]:
    """A directory of its own, in memory where there is such a file system."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-", dir=memory) as directory:
        yield Path(directory)


async def _require_admissions(store: EventStore, acknowledged: set[str]) -> frozenset[str]:
    inbox = await rows(store, "SELECT id FROM session_input")
    admitted = await rows(store, "SELECT data FROM event WHERE type LIKE '%.prompt.admitted.%'")
    logged = Counter(str(codec.decode_any(_bytes(data))["messageID"]) for (data,) in admitted)
    _require_all(acknowledged, frozenset(logged))
    _require(set(logged.values()) <= {1}, f"admitted more than once: {logged}")
    _require({str(row[0]) for row in inbox} == logged.keys(), "the inbox is not what the log says")
    return frozenset(logged)


def _require_all(acknowledged: set[str], admitted: frozenset[str]) -> None:
    _require(acknowledged <= admitted, f"lost: {sorted(acknowledged - admitted)}")


def _bytes(value: SqlValue) -> bytes:
    assert isinstance(value, bytes)
    return value


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise BrokenImageError(broken)


def _digest(files: Mapping[str, bytes]) -> bytes:
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(f"{name} {len(files[name])}\n".encode())
        found.update(files[name])
    return found.digest()


def _lay_out(files: Mapping[str, bytes], directory: Path) -> None:
    for name, content in files.items():
        (directory / name).write_bytes(content)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.power.images", description=__doc__)
    parser.add_argument("--image", type=int, required=True, metavar="N")
    parser.add_argument("--count", type=int, default=1, help="so many, from N on, until one fails")
    parser.add_argument("--unsynced", action="store_true", help="of a run that never syncs")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="leave the files here")
    options = parser.parse_args(arguments)
    last = options.image + options.count - 1
    try:
        for number in range(options.image, last + 1):
            check(number, synced=not options.unsynced, keep=options.keep)
    except BrokenImageError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write(f"images {options.image} to {last}: every promise was kept\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
