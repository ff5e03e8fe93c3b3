"""Finds and ends the children that a dead process left running.

A child is found by its record (host.process.child_records): by the variable that it and its
descendants inherited, and, while the process that was started lives, by its session and by
parentage, which a program cannot leave by changing its environment. Only a descendant that changed
its environment and its session, and whose parents are dead, is not found.

Invariant: a signal is only sent to a process that was found so, with the start time that it had
then. Without /proc none is found. Also a program: host.process.watcher starts it.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.host.process import table
from perdure.host.process.table import ProcessRow
from perdure.schema.value import Value

VARIABLE: Final = "PERDURE_CHILD"
_SUFFIX: Final = ".child"
_LOOK_SECONDS: Final = 0.02


class Record(Value, kw_only=True):
    """What is known of a child: empty until it has started."""

    leader: int = 0
    identity: str = ""
    reach: str = "tree"
    session: str = ""
    """The Session on whose behalf it was started, if any."""

    def to_line(self) -> str:
        return f"{self.leader} {self.identity or '-'} {self.reach} {self.session}"


class Orphan(Value):
    """A process that could not be ended."""

    pid: int
    program: str
    session: str


def path_of(directory: str, process: str, number: int) -> str:
    """The path of the record of a child of `process`."""
    return os.path.join(directory, f"{process}.{number}{_SUFFIX}")


def name_of(path: str) -> str:
    """The value of VARIABLE in the environment of the child with that record."""
    return os.path.basename(path).removesuffix(_SUFFIX)


def list_processes(directory: str) -> frozenset[str]:
    """The processes, dead or alive, that have recorded children."""
    return frozenset(name.rpartition(".")[0] for name in _names(directory))


def end(directory: str, process: str) -> tuple[Orphan, ...]:
    """End the recorded children of a dead process; returns what still runs. Waits for their end.

    They are asked to exit first, so that a program can remove its lock files, and then killed.
    """
    records = _read_records(directory, process)
    if not records:
        return ()
    search = _Search(records)
    for number, seconds in (
        (signal.SIGTERM, limits.ORPHAN_TERMINATE_SECONDS),
        (signal.SIGKILL, limits.ORPHAN_KILL_SECONDS),
    ):
        search.signal_until_gone(number, seconds)
    for name in records.keys() - set(search.found.values()):
        with suppress(OSError):
            os.unlink(os.path.join(directory, name + _SUFFIX))
    return tuple(
        Orphan(row.pid, row.program, records[name].session) for row, name in search.found.items()
    )


def main() -> None:
    """End the children of the process that the arguments name."""
    directory, process = sys.argv[1:]
    end(directory, process)


class _Search:
    """The running processes that belong to records.

    One that was found stays found until it ends: its parents may end before it, and with them
    all that told where it belongs.
    """

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records
        self.found: dict[ProcessRow, str] = {}
        """With the name of the record."""

    def signal_until_gone(self, number: signal.Signals, seconds: float) -> None:
        """Signal each process once, also those that appear meanwhile, and wait for their end."""
        signalled: set[tuple[int, str]] = set()
        over = time.monotonic() + seconds
        while True:
            self._look()
            for row in self.found:
                if (row.pid, row.started) not in signalled:
                    signalled.add((row.pid, row.started))
                    table.send_signal(row, number)
                    # A stopped process does not exit before it continues.
                    table.send_signal(row, signal.SIGCONT)
            if not self.found or time.monotonic() >= over:
                return
            # Not children of this process, so their end cannot be waited for; in a thread.
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        rows = {row.pid: row for row in table.list_rows() if row.pid != os.getpid()}
        found = {
            rows[row.pid]: name
            for row, name in self.found.items()
            if table.is_same(row, rows.get(row.pid))
        }
        for row in rows.values():
            name = table.read_variable(row.pid, VARIABLE)
            if name in self._records and _is_within(self._records[name], row):
                found[row] = name
        for name, record in self._records.items():
            leader = rows.get(record.leader)
            if leader is not None and table.identify(leader) == record.identity:
                found |= {row: name for row in rows.values() if row.session == record.leader}
        self._add_descendants(found, rows)
        self.found = found

    def _add_descendants(
        self, found: dict[ProcessRow, str], rows: Mapping[int, ProcessRow]
    ) -> None:
        names = {row.pid: name for row, name in found.items()}
        grown = True
        while grown:
            grown = False
            for row in rows.values():
                name = names.get(row.parent)
                if name is None or row.pid in names or not _is_within(self._records[name], row):
                    continue
                names[row.pid] = found[row] = name
                grown = True


def _is_within(record: Record, row: ProcessRow) -> bool:
    return record.reach == "tree" or not record.leader or row.session == record.leader


def _read_records(directory: str, process: str) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for name in _names(directory):
        if name.rpartition(".")[0] == process:
            records[name] = _read_record(os.path.join(directory, name + _SUFFIX))
    return records


def _read_record(path: str) -> Record:
    """An empty record if the process died while it wrote it."""
    try:
        with open(path, encoding="utf-8") as file:
            leader, identity, reach, session = file.read().split(" ")
        return Record(leader=int(leader), identity=identity, reach=reach, session=session)
    except (OSError, ValueError):
        return Record()


def _names(directory: str) -> Iterator[str]:
    with suppress(OSError):
        for name in os.listdir(directory):
            if name.endswith(_SUFFIX):
                yield name.removesuffix(_SUFFIX)
