"""The user's environment when the process started: its variables and directories.

Read once and passed down, so that no other module reads the process environment and a later change
cannot move data. Only variables decide these directories; no project file can.

`OPENCODE_CONFIG_DIR` or the XDG config directory holds the configuration shared with other OpenCode
programs; `PERDURE_DATA_DIR` or the XDG data directory holds Perdure's own data. The managed
directory belongs to the administrator of the machine, and no variable moves it.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.schema.value import Confidential

_TEMP_DIR_DEFAULT: Final = "/tmp"
_MANAGED_DIR: Final = (
    "/Library/Application Support/opencode" if sys.platform == "darwin" else "/etc/opencode"
)


class Environment(Confidential, kw_only=True):
    """Variables and directories. All paths are absolute; variables may be secret."""

    home: str
    config_dir: str
    data_dir: str
    temp_dir: str
    managed_dir: str = _MANAGED_DIR
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


def from_process() -> Environment:
    """The current environment of this process."""
    return from_variables(dict(os.environ))


def from_variables(variables: Mapping[str, str]) -> Environment:
    """The environment that these variables describe. A relative path counts as unset."""
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
