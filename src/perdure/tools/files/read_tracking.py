"""Tracks which version of a file each Session has read, so that it overwrites nothing unread.

Kept in memory, as a version of the whole file for each Session and path; the oldest entries are
dropped first. A tool that names what it replaces (edit, apply_patch) may change a file without an
entry; `write` may not.

Invariant: a file that changed after a Session read it is not changed by that Session's tools
before it is read again.
"""

import hashlib
from collections import OrderedDict

from perdure.core.limits import EDIT_FILE_BYTES_MAX, SEEN_FILES_MAX
from perdure.ports import Filesystem
from perdure.ports.offload import offload
from perdure.schema.ids import SessionID


class ReadTracker:
    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[SessionID, str], str] = OrderedDict()

    def note(self, session_id: SessionID, path: str, version: str) -> None:
        """Record that the Session read or wrote this version of the file."""
        self._versions[session_id, path] = version
        self._versions.move_to_end((session_id, path))
        while len(self._versions) > SEEN_FILES_MAX:
            self._versions.popitem(last=False)

    def version(self, session_id: SessionID, path: str) -> str | None:
        """The version that the Session knows; None without an entry."""
        return self._versions.get((session_id, path))

    def forget(self, session_id: SessionID, path: str) -> None:
        self._versions.pop((session_id, path), None)


def version_of(data: bytes) -> str:
    """The version of a file with the content `data`."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


async def version_at(files: Filesystem, path: str) -> str:
    """The current version of a file."""
    status = await files.stat(path)
    if status.size > EDIT_FILE_BYTES_MAX:
        # Too large to edit; hashing all of it for each page would cost too much.
        return f"{status.size} bytes of {status.modified_ns}"
    return await version_in(await files.read(path, bytes_max=EDIT_FILE_BYTES_MAX))


async def version_in(data: bytes) -> str:
    """As `version_of`, for content that may be large."""
    return await offload(len(data), lambda: version_of(data))
