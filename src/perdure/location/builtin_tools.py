"""The built-in tools at a Location: joins what they act through with where they act."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from perdure.location.services import ToolSite
from perdure.location.web_access import Web
from perdure.ports import Filesystem, ProcessRunner
from perdure.schema.value import Value
from perdure.tools.authority import PathAuthority
from perdure.tools.builtins import register_builtins
from perdure.tools.environment import ToolEnvironment
from perdure.tools.file_mutation import FileMutations
from perdure.tools.registry import ToolRegistry

OUTPUT_DIRECTORY: Final = "tool-output"
"""Below the data directory; the built-in agents may read it without asking."""

_SHELL_DEFAULT: Final = "/bin/sh"
_SHELLS: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


class BuiltinTools(Value, kw_only=True):
    """A services.OpenTools. `application` holds the tools of the whole program, below these."""

    filesystem: Filesystem
    processes: ProcessRunner
    mutations: FileMutations
    """One for the process: two Locations may reach the same file."""
    ripgrep: str | None = None
    application: ToolRegistry | None = None
    web: Web | None = None

    @contextmanager
    def __call__(self, site: ToolSite) -> Generator[ToolRegistry]:
        registry = ToolRegistry(application=self.application)
        authority = PathAuthority(
            site.directory,
            filesystem=self.filesystem,
            permissions=site.permissions,
            output_directory=f"{site.environment.data_dir}/{OUTPUT_DIRECTORY}",
        )
        environment = ToolEnvironment(
            filesystem=self.filesystem,
            processes=self.processes,
            permissions=site.permissions,
            authority=authority,
            mutations=self.mutations,
            shell=shell_of(site),
            ripgrep=self.ripgrep,
            output_limits=site.settings.tool_output,
            web=None if self.web is None else self.web.access(site),
        )
        with register_builtins(registry, environment, site.questions, site.skills):
            yield registry


def shell_of(site: ToolSite) -> str:
    """The configured shell; else the user's own where it takes the usual syntax."""
    own = site.environment.variables.get("SHELL", "")
    usual = own.startswith("/") and own.rpartition("/")[2] in _SHELLS
    return site.settings.shell or (own if usual else _SHELL_DEFAULT)
