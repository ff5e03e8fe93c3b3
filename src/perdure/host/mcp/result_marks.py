"""Marks of the results that `perdure mcp-server` has returned: an empty file for each.

Invariant: for one result `claim` returns True once, whichever processes ask.
"""

import hashlib
import os
from contextlib import suppress

_FOLDER = "mcp-server"


class ResultMarks:
    def __init__(self, data_directory: str) -> None:
        self._directory = os.path.join(data_directory, _FOLDER)

    def claim(self, session_id: str, result_id: str) -> bool:
        """Mark a result as returned; whether it was not before. Raises OSError."""
        folder = os.path.join(self._directory, _name(session_id))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, _name(result_id))
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        os.fsync(handle)
        os.close(handle)
        return True

    def forget(self, session_id: str) -> None:
        """Remove the marks of a Session that is gone."""
        folder = os.path.join(self._directory, _name(session_id))
        with suppress(OSError):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)


def _name(text: str) -> str:
    # An id is an argument of a client, and may hold what a file name may not.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
