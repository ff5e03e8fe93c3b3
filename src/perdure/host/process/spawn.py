"""Children that take nothing over from whoever started us: no signal ignored, no file open.

What a process ignores, its children ignore, and a shell cannot change it. A program that a script
put into the background ignores Control-C, and one that `nohup` started ignores a hang-up; neither
may be true of what we start for somebody else. Each child leads a session of its own. Whoever
starts one reaps it.

Invariant: nothing of ours runs between fork and exec.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final

_SHELL: Final = "/bin/sh"
_OPEN_FILES: Final = "/dev/fd"
_STANDARD_MAX: Final = 2

FileAction = tuple[int, int] | tuple[int, int, int] | tuple[int, int, str, int, int]
"""As os.posix_spawn takes them: a descriptor closed or put in another's place, a file opened."""

_IGNORED_HERE: Final = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGCHLD,
)
"""Signals that we may ignore, and a child must not."""


def shell(
    script: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    files: Sequence[FileAction],
) -> int:
    """Run `script` with `arguments` as its $0, $1 and so on; the process. Raises OSError."""
    return os.posix_spawn(
        _SHELL,
        ("sh", "-c", script, *arguments),
        environment,
        file_actions=(*((os.POSIX_SPAWN_CLOSE, file) for file in _handed_down()), *files),
        setsid=True,
        setsigmask=(),
        setsigdef=_IGNORED_HERE,
    )


def _handed_down() -> list[int]:
    """Files that we were started with. What Python opens is closed in a child anyway."""
    try:
        names = os.listdir(_OPEN_FILES)
    except OSError:
        # Nobody can say. They stay open, as they are in us.
        return []
    return [file for file in map(int, names) if file > _STANDARD_MAX and _is_inheritable(file)]


def _is_inheritable(file: int) -> bool:
    try:
        return os.get_inheritable(file)
    except OSError:
        # Closed meanwhile, as the one is through which they were listed.
        return False
