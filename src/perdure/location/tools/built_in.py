"""Makes the built-in tools of a Location from shared adapters and the Location's services."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

from perdure.core.shell import environment as shell_environment
from perdure.location.tools import sandbox_policy
from perdure.location.tools.location_tools import ToolServices
from perdure.location.tools.web_access import WebServices
from perdure.location.workspace.files import LocationFiles
from perdure.ports import Filesystem, SpoolingRunner
from perdure.ports.jobs import BackgroundJobs
from perdure.ports.sandbox import Containment, Sandbox
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

_PROCESSES: Final = "/proc"
"""Shows the environment of this process. A command has one of its own."""
_SHELL_DEFAULT: Final = "/bin/sh"
_SHELLS: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


class BuiltinTools(Value, kw_only=True):
    """Implements location_tools.OpenTools. `application` holds the tools of the whole program."""

    filesystem: Filesystem
    processes: SpoolingRunner
    mutations: FileMutations
    """One for the process, because two Locations may contain the same file."""
    outputs: ToolOutputStore | None = None
    ripgrep: str | None = None
    application: ToolRegistry | None = None
    web: WebServices | None = None
    jobs: BackgroundJobs | None = None
    sandbox: Sandbox | None = None

    @contextmanager
    def __call__(self, services: ToolServices) -> Generator[ToolRegistry]:
        registry = ToolRegistry(application=self.application)
        environment = self.environment(services)
        with register_builtins(
            registry, environment, services.questions, services.skills, subagents=services.subagents
        ):
            yield registry

    def files(self, services: ToolServices) -> LocationFiles:
        """The file access of a Location, within the same boundary."""
        return LocationFiles(lambda: self.environment(services))

    def environment(self, services: ToolServices) -> ToolEnvironment:
        """The ToolEnvironment of a Location."""
        path_access = PathAccess(
            services.directory,
            filesystem=self.filesystem,
            permissions=services.permissions,
            own=OwnDirectories(
                outputs=f"{services.environment.data_dir}/{OUTPUT_DIRECTORY}",
                data=services.environment.data_dir,
                configuration=services.environment.config_dir,
                readable=tuple(sandbox_policy.list_readable(services.environment)),
                secrets=(*sandbox_policy.find_secrets(services), _PROCESSES),
            ),
            references=lambda: _references(services),
        )
        return ToolEnvironment(
            filesystem=self.filesystem,
            processes=self.processes,
            permissions=services.permissions,
            path_access=path_access,
            mutations=self.mutations,
            shell=choose_shell(services),
            variables=_variables(services),
            containment=self._containment(services),
            outputs=self.outputs,
            ripgrep=self.ripgrep,
            output_limits=services.settings.tool_output,
            images=services.settings.images,
            after_edit=self._after_edit(services),
            web=None if self.web is None else self.web.access(services),
            jobs=self.jobs,
        )

    def _containment(self, services: ToolServices) -> Containment | None:
        settings = services.settings.sandbox
        if self.sandbox is None or settings.mode == "danger-full-access":
            return None
        read_policy = partial(sandbox_policy.read_policy, services)
        return Containment(self.sandbox, read_policy, settings.ask)

    def _after_edit(self, services: ToolServices) -> PostEdit:
        return PostEdit(
            programs=services.settings.after_edit,
            directory=services.directory,
            processes=self.processes,
            variables=_variables(services),
            containment=self._containment(services),
            diagnoser=services.diagnoser,
            edited=lambda path: services.publish(FileEdited(path)),
        )


def _key_variables(services: ToolServices) -> frozenset[str]:
    """The variables from which configured providers take their keys."""
    configured = (provider.env or () for provider in services.settings.providers.values())
    return frozenset(name for names in configured for name in names)


def _variables(services: ToolServices) -> dict[str, str]:
    """The environment of commands: the user's, without variables that look like secrets."""
    return shell_environment.without_secrets(
        services.environment.variables,
        keys=_key_variables(services),
        allowed=services.settings.shell_variables,
    )


def _references(services: ToolServices) -> dict[str, str]:
    found = () if services.references is None else services.references.list()
    return {info.name: info.path for info in found}


def choose_shell(services: ToolServices) -> str:
    """The configured shell, else the user's if it has POSIX syntax, else /bin/sh."""
    own = services.environment.variables.get("SHELL", "")
    usual = own.startswith("/") and own.rpartition("/")[2] in _SHELLS
    return services.settings.shell or (own if usual else _SHELL_DEFAULT)
