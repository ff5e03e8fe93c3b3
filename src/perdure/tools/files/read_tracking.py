"""What each Session has seen of which file, so that it does not overwrite what it has not seen.

Kept in memory, as a version of the whole file for each Session and path; the oldest are forgotten
first, and all of them with the process. A tool that names what it replaces (edit, apply_patch) may
change a file of which nothing is remembered. One that does not (write) may not.

Invariant: a file that changed after its Session saw it is changed by nobody's tool before it is
read again.
"""

import asyncio
import hashlib
from collections import OrderedDict

from perdure.core.limits import EDIT_FILE_BYTES_MAX, FILE_INLINE_BYTES_MAX, SEEN_FILES_MAX
from perdure.ports import Filesystem
from perdure.schema.ids import SessionID


class ReadTracker:
    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[SessionID, str], str] = OrderedDict()

    def note(self, session_id: SessionID, path: str, version: str) -> None:
        """The Session knows this version of the file: it has read or written it."""
        self._versions[session_id, path] = version
        self._versions.move_to_end((session_id, path))
        while len(self._versions) > SEEN_FILES_MAX:
            self._versions.popitem(last=False)

    def version(self, session_id: SessionID, path: str) -> str | None:
        """The version that the Session saw last; None when nothing is remembered."""
        return self._versions.get((session_id, path))

    def forget(self, session_id: SessionID, path: str) -> None:
        self._versions.pop((session_id, path), None)


def version_of(data: bytes) -> str:
    """The version of a file that holds exactly `data`."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


async def version_at(files: Filesystem, path: str) -> str:
    """The version of the file as it is now."""
    status = await files.stat(path)
    if status.size > EDIT_FILE_BYTES_MAX:
        # No tool edits it, and reading all of it for each page would cost more than it tells.
        return f"{status.size} bytes of {status.modified_ns}"
    data = await files.read(path, bytes_max=EDIT_FILE_BYTES_MAX)
    if len(data) <= FILE_INLINE_BYTES_MAX:
        return version_of(data)
    return await asyncio.to_thread(version_of, data)
