"""Program of test_unreadable: meets every error at everything, and some errors at each path."""

import asyncio
import errno
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from perdure.core.context.system_context import Unchanged
from tests.contract.location.opened_location import LocationFolders
from tests.contract.location.told_session import (
    READ_DIRECTORIES,
    READ_FILES,
    ToldSession,
    furnish,
)
from tests.harness.faults import failing_paths


async def main(root: Path) -> int:
    logging.disable(logging.CRITICAL)
    root.mkdir()
    folders = LocationFolders(root)
    furnish(folders)
    session = ToldSession(folders)
    await session.begin()
    wrong = [case async for case in _sweep(session, folders)]
    for work in folders.background:
        work.close()
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{len(failing_paths.ERRORS)} errors\n")
    return 1 if wrong else 0


def _cases(root: Path) -> Iterator[tuple[str, int]]:
    for error in sorted(failing_paths.ERRORS):
        yield str(root), error
    for path in (*READ_FILES, *READ_DIRECTORIES):
        for error in (errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE):
            yield str(root / path), error


async def _sweep(session: ToldSession, folders: LocationFolders) -> AsyncIterator[str]:
    for path, error in _cases(folders.root):
        before = failing_paths.count_failures()
        with failing_paths.failing_below(path, error):
            restarted = session.restarted()
            if not isinstance(await session.changes(), Unchanged):
                yield f"{path} {errno.errorcode[error]}: something is told"
            if not isinstance(await restarted.changes(), Unchanged):
                yield f"{path} {errno.errorcode[error]}: something is told after a restart"
        if failing_paths.count_failures() == before:
            yield f"{path}: is not looked at"
        if not isinstance(await session.changes(), Unchanged):
            yield f"{path} {errno.errorcode[error]}: something is told afterwards"


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
