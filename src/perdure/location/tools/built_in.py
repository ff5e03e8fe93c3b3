"""The built-in tools at a Location: joins what they act through with where they act."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from perdure.core.shell import environment as shell_environment
from perdure.location.tools.site import ToolSite
from perdure.location.tools.web_access import Web
from perdure.location.workspace.files import LocationFiles
from perdure.ports import Filesystem, SpoolingRunner
from perdure.ports.jobs import BackgroundJobs
from perdure.schema.live_event import FileEdited
from perdure.schema.value import Value
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.builtin.register import register_builtins
from perdure.tools.environment import ToolEnvironment
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.path_access import OwnDirectories, PathAccess
from perdure.tools.files.post_edit import PostEdit

OUTPUT_DIRECTORY: Final = "tool-output"
"""Below the data directory; the built-in agents may read it without asking."""

_SHELL_DEFAULT: Final = "/bin/sh"
_SHELLS: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


class BuiltinTools(Value, kw_only=True):
    """A services.OpenTools. `application` holds the tools of the whole program, below these."""

    filesystem: Filesystem
    processes: SpoolingRunner
    mutations: FileMutations
    """One for the process: two Locations may reach the same file."""
    outputs: ToolOutputStore | None = None
    ripgrep: str | None = None
    application: ToolRegistry | None = None
    web: Web | None = None
    jobs: BackgroundJobs | None = None

    @contextmanager
    def __call__(self, site: ToolSite) -> Generator[ToolRegistry]:
        registry = ToolRegistry(application=self.application)
        environment = self.environment(site)
        with register_builtins(
            registry, environment, site.questions, site.skills, subagents=site.subagents
        ):
            yield registry

    def files(self, site: ToolSite) -> LocationFiles:
        """The files of a Location, within the same boundary."""
        return LocationFiles(lambda: self.environment(site))

    def environment(self, site: ToolSite) -> ToolEnvironment:
        """What tools at `site` work in."""
        authority = PathAccess(
            site.directory,
            filesystem=self.filesystem,
            permissions=site.permissions,
            own=OwnDirectories(
                outputs=f"{site.environment.data_dir}/{OUTPUT_DIRECTORY}",
                data=site.environment.data_dir,
                configuration=site.environment.config_dir,
            ),
            references=lambda: _references(site),
        )
        return ToolEnvironment(
            filesystem=self.filesystem,
            processes=self.processes,
            permissions=site.permissions,
            authority=authority,
            mutations=self.mutations,
            shell=shell_of(site),
            variables=_variables(site),
            outputs=self.outputs,
            ripgrep=self.ripgrep,
            output_limits=site.settings.tool_output,
            images=site.settings.images,
            after_edit=self._after_edit(site),
            web=None if self.web is None else self.web.access(site),
            jobs=self.jobs,
        )

    def _after_edit(self, site: ToolSite) -> PostEdit:
        return PostEdit(
            programs=site.settings.after_edit,
            directory=site.directory,
            processes=self.processes,
            variables=_variables(site),
            diagnoser=site.diagnoser,
            edited=lambda path: site.publish(FileEdited(path)),
        )


def _key_variables(site: ToolSite) -> frozenset[str]:
    """The variables that configured providers take their keys from, whatever they are called."""
    configured = (provider.env or () for provider in site.settings.providers.values())
    return frozenset(name for names in configured for name in names)


def _variables(site: ToolSite) -> dict[str, str]:
    """The environment of commands: the user's, without what looks like a secret."""
    return shell_environment.without_secrets(
        site.environment.variables,
        keys=_key_variables(site),
        allowed=site.settings.shell_variables,
    )


def _references(site: ToolSite) -> dict[str, str]:
    found = () if site.references is None else site.references.list()
    return {info.name: info.path for info in found}


def shell_of(site: ToolSite) -> str:
    """The configured shell; else the user's own where it takes the usual syntax."""
    own = site.environment.variables.get("SHELL", "")
    usual = own.startswith("/") and own.rpartition("/")[2] in _SHELLS
    return site.settings.shell or (own if usual else _SHELL_DEFAULT)
