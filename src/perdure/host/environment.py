"""The user's environment as it was when the process started: variables, and where things are kept.

Taken once and handed down, so that nothing deeper reads the process environment and a change of
it cannot move data while we run. Only variables decide these places; no project file can.

`OPENCODE_CONFIG_DIR` or the XDG config directory holds the configuration that other OpenCode
programs share; `PERDURE_DATA_DIR` or the XDG data directory holds what is ours alone.
"""

import os
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.schema.value import Confidential

_TEMP_DIR_DEFAULT: Final = "/tmp"


class Environment(Confidential, kw_only=True):
    """Every path is absolute. The variables may hold secrets and are never printed."""

    home: str
    config_dir: str
    data_dir: str
    temp_dir: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


def from_process() -> Environment:
    """The environment of this process, now."""
    return from_variables(dict(os.environ))


def from_variables(variables: Mapping[str, str]) -> Environment:
    """The environment that these variables describe. A relative path in one counts as unset."""
    home = _absolute(variables, "HOME") or os.path.expanduser("~")
    config_home = _absolute(variables, "XDG_CONFIG_HOME") or os.path.join(home, ".config")
    data_home = _absolute(variables, "XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return Environment(
        home=home,
        config_dir=_absolute(variables, "OPENCODE_CONFIG_DIR")
        or os.path.join(config_home, "opencode"),
        data_dir=_absolute(variables, "PERDURE_DATA_DIR") or os.path.join(data_home, "perdure"),
        temp_dir=os.path.realpath(_absolute(variables, "TMPDIR") or _TEMP_DIR_DEFAULT),
        variables=variables,
    )


def _absolute(variables: Mapping[str, str], name: str) -> str | None:
    value = variables.get(name, "")
    return os.path.normpath(value) if os.path.isabs(value) else None
