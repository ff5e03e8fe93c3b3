"""Environment variables that the dynamic loader obeys before a program begins.

A project may set variables of the programs that it names. The launcher of the sandbox restricts
itself after the loader has run, so code that such a variable names would run outside. Only the
program inside gets these.
"""

from collections.abc import Mapping, Sequence
from typing import Final

_PREFIXES: Final = ("LD_", "DYLD_", "_RLD", "LIBPATH", "SHLIB_PATH")
_NAMES: Final = frozenset({"GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR"})
_ENV: Final = "env"


def is_obeyed(name: str) -> bool:
    """Whether a loader, or the C library as it begins, reads code or settings from it."""
    return name.startswith(_PREFIXES) or name in _NAMES


def move_inside(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command line that sets these variables itself, and the environment without them.

    A program whose name looks like a setting to `env` does not get them.
    """
    outer = {name: value for name, value in environment.items() if not is_obeyed(name)}
    inner = [f"{name}={value}" for name, value in environment.items() if is_obeyed(name)]
    if not inner or "=" in arguments[0]:
        return tuple(arguments), outer
    return (_ENV, *inner, *arguments), outer
