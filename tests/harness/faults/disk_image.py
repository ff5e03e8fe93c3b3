"""What a power loss leaves on the disk, drawn from a record of what was asked of it.

What was synced is there. What was not may be there, may be missing, may be there in another order,
or in part: a disk writes sectors, and a file system pages. A removal that no sync of the directory
covered may be undone. Nothing else happens: bytes outside of a write stay what they were.

Invariant: equal records, cuts and chances give equal images.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

from perdure.schema.value import State
from tests.harness.faults.recording_vfs import (
    Create,
    Delete,
    FailedSync,
    Mark,
    Operation,
    Sync,
    Truncate,
    Write,
)

TEAR_BYTES: Final = (512, 4096)
"""A sector of a disk, a page of a file system."""
_KEPT: Final = (0.0, 0.5, 0.9, 1.0)
"""How much of what was not synced survives, from nothing to everything."""
_TORN: Final = 0.3
_DIRECTORY_SYNCED_WITH: Final = ("-wal", "-journal")


def after_power_loss(operations: Sequence[Operation], chance: Random) -> Mapping[str, bytes]:
    """The files as they may be found when power was lost right after the last of these."""
    disk = _Disk()
    for operation in operations:
        disk.apply(operation, chance)
    return disk.found(chance)


class Cuts:
    """The same for one record that is cut many times: a later cut goes on from the one before.

    No sync of it may have failed: what that left is drawn anew for each image.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        assert not any(isinstance(operation, FailedSync) for operation in operations)
        self._operations = operations
        self._disk = _Disk()
        self._applied = 0

    def after_power_loss(self, count: int, chance: Random) -> Mapping[str, bytes]:
        """The files when power was lost after the first `count` operations."""
        if count < self._applied:
            self._disk, self._applied = _Disk(), 0
        for operation in self._operations[self._applied : count]:
            self._disk.apply(operation, chance)
        self._applied = count
        return self._disk.found(chance)


class _File(State):
    durable: bytearray
    unsynced: list[Write | Truncate]
    is_new: bool = True
    """Its own name is not yet known to be in the directory."""


class _Disk:
    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._removed: dict[str, _File] = {}
        """Files whose removal the directory may still forget."""

    def apply(self, operation: Operation, chance: Random) -> None:
        match operation:
            case Write(file=file) | Truncate(file=file):
                self._files[file].unsynced.append(operation)
            case Sync(file=file):
                self._sync(file)
            case FailedSync(file=file):
                failed = self._files[file]
                failed.durable = _survived(failed, chance)
                failed.unsynced.clear()
            case Create(file=file):
                self._files.setdefault(file, _File(bytearray(), []))
            case Delete(file=file):
                self._removed[file] = self._files.pop(file)
            case Mark():
                pass

    def found(self, chance: Random) -> Mapping[str, bytes]:
        """Drawn, and not yet lost: the disk may go on from here."""
        undone = {name: file for name, file in self._removed.items() if chance.random() < 0.5}
        files = self._files | undone
        return {name: bytes(_survived(file, chance)) for name, file in files.items()}

    def _sync(self, name: str) -> None:
        file = self._files[name]
        for operation in file.unsynced:
            _carry_out(file.durable, operation)
        file.unsynced.clear()
        # SQLite syncs the directory together with a log that it has just made.
        if file.is_new and name.endswith(_DIRECTORY_SYNCED_WITH):
            self._removed.clear()
        file.is_new = False


def _survived(file: _File, chance: Random) -> bytearray:
    """With some of what was not synced: that gets there after all, and the rest never will."""
    content = bytearray(file.durable)
    kept = chance.choice(_KEPT)
    survivors = [operation for operation in file.unsynced if chance.random() < kept]
    if chance.random() < 0.5:
        chance.shuffle(survivors)
    for operation in survivors:
        for piece in _torn(operation, chance):
            _carry_out(content, piece)
    return content


def _torn(operation: Write | Truncate, chance: Random) -> Iterator[Write | Truncate]:
    if isinstance(operation, Truncate) or chance.random() >= _TORN:
        yield operation
        return
    for piece in _pieces(operation, chance.choice(TEAR_BYTES)):
        if chance.random() < 0.5:
            yield piece


def _pieces(write: Write, unit: int) -> Iterator[Write]:
    """The parts of a write that lie in different sectors or pages of `unit` bytes."""
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // unit + 1) * unit)
        yield Write(write.file, start, write.data[start - write.offset : stop - write.offset])
        start = stop


def _carry_out(content: bytearray, operation: Write | Truncate) -> None:
    if isinstance(operation, Truncate):
        _resize(content, operation.size)
        return
    end = operation.offset + len(operation.data)
    if len(content) < end:
        _resize(content, end)
    content[operation.offset : end] = operation.data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
