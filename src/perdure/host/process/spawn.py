"""Starts child processes that inherit neither ignored signals nor open files.

A child inherits ignored signals, and a shell cannot reset them. A program that a script put into
the background ignores Control-C, and one that `nohup` started ignores a hang-up; the user's
commands must not. Each child leads its own session. The caller reaps it.

Invariant: no Python code runs between fork and exec.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final

_SHELL: Final = "/bin/sh"
_OPEN_FILES: Final = "/dev/fd"
_STANDARD_MAX: Final = 2

_NEEDED: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE")

FileAction = tuple[int, int] | tuple[int, int, int] | tuple[int, int, str, int, int]
"""A file action of os.posix_spawn: close, duplicate or open a descriptor."""

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
"""Signals that this process may ignore and a child must not."""


def bare_environment() -> dict[str, str]:
    """The environment of a process that is part of this program: nothing that may be a secret."""
    return {name: os.environ[name] for name in _NEEDED if name in os.environ}


def start_program(
    arguments: Sequence[str], *, environment: Mapping[str, str], files: Sequence[FileAction]
) -> int:
    """Start a program by its path, in a session of its own; returns the pid. Raises OSError."""
    return os.posix_spawn(
        arguments[0],
        tuple(arguments),
        environment,
        file_actions=(*((os.POSIX_SPAWN_CLOSE, file) for file in _inheritable_files()), *files),
        setsid=True,
        setsigmask=(),
        setsigdef=_IGNORED_HERE,
    )


def start_shell(
    script: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    files: Sequence[FileAction],
) -> int:
    """Start `script` with `arguments` as its $0, $1 and so on; returns the pid. Raises OSError."""
    return start_program((_SHELL, "-c", script, *arguments), environment=environment, files=files)


def _inheritable_files() -> list[int]:
    """Files that this process inherited. Those opened by Python are closed in a child anyway."""
    try:
        names = os.listdir(_OPEN_FILES)
    except OSError:
        # Unknown on this system; they stay open.
        return []
    return [file for file in map(int, names) if file > _STANDARD_MAX and _is_inheritable(file)]


def _is_inheritable(file: int) -> bool:
    try:
        return os.get_inheritable(file)
    except OSError:
        # Closed meanwhile, such as the descriptor of the listing itself.
        return False
