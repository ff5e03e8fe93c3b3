"""A small process that ends the children of this one when it dies.

It waits at the end of a pipe that only this process holds open, so it learns of a death however it
happens. It is a shell, which costs a megabyte, and becomes Python only if there are children to end
(host.process.orphans). If it is killed too, the next process that opens the data directory ends
them.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from perdure.host.process import spawn

_SCRIPT: Final = """\
cd /
IFS= read -r line
for record in "$1/$2".*.child; do
  [ -e "$record" ] && exec "$3" -I -c "$4" "$1" "$2"
done
"""
_ROOT: Final = Path(__file__).resolve().parents[3]
_PROGRAM: Final = """\
import sys
sys.path.insert(0, {root!r})
from perdure.host.process import orphans
orphans.main()
"""


class Watcher:
    """The watching process. Without one, the next process on the data directory ends children."""

    def __init__(self, directory: str, process: str) -> None:
        read_end, self._pipe = os.pipe()
        try:
            self._pid = _start(os.path.abspath(directory), process, read_end)
        except OSError:
            self._pid = None
        finally:
            os.close(read_end)

    def stop(self) -> None:
        """Let it end what is left, and wait for that."""
        os.close(self._pipe)
        if self._pid is not None:
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


def _start(directory: str, process: str, pipe: int) -> int | None:
    if not sys.executable:
        # This program is part of another one, and Python cannot be started again.
        return None
    return spawn.start_shell(
        _SCRIPT,
        ("perdure-watcher", directory, process, sys.executable, _PROGRAM.format(root=str(_ROOT))),
        environment=spawn.bare_environment(),
        files=(
            (os.POSIX_SPAWN_DUP2, pipe, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ),
    )
