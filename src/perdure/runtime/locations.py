"""Locations as clients see them, and the tools that work in each."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from perdure.host.process import find_ripgrep
from perdure.location.location_map import LocationMap
from perdure.location.services import ToolSite
from perdure.ports import Filesystem, ProcessRunner
from perdure.schema.agent import AgentInfo
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.model import ModelInfo, ProviderInfo
from perdure.tools.authority import PathAuthority
from perdure.tools.builtins import register_builtins
from perdure.tools.environment import ToolEnvironment
from perdure.tools.file_mutation import FileMutations
from perdure.tools.registry import ToolRegistry


class Locations:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(self, locations: LocationMap) -> None:
        self._locations = locations

    async def info(self, ref: LocationRef) -> LocationInfo:
        return await (await self._locations.get(ref)).info()

    async def agents(self, ref: LocationRef) -> tuple[AgentInfo, ...]:
        return (await self._locations.get(ref)).agents.list()

    async def models(self, ref: LocationRef) -> tuple[ModelInfo, ...]:
        return (await self._locations.get(ref)).catalog.models()

    async def providers(self, ref: LocationRef) -> tuple[ProviderInfo, ...]:
        return (await self._locations.get(ref)).catalog.providers()

    async def provider(self, ref: LocationRef, id: str) -> ProviderInfo:
        return (await self._locations.get(ref)).catalog.provider(id)


def tools_opener(
    application: ToolRegistry,
    *,
    filesystem: Filesystem,
    processes: ProcessRunner,
    output_directory: str,
) -> Callable[[ToolSite], AbstractContextManager[ToolRegistry]]:
    """How the tools of a Location are made: the built-in ones over those of the application."""

    @contextmanager
    def open_tools(site: ToolSite) -> Generator[ToolRegistry]:
        registry = ToolRegistry(application=application)
        environment = ToolEnvironment(
            filesystem=filesystem,
            processes=processes,
            permissions=site.permissions,
            authority=PathAuthority(
                site.directory,
                filesystem=filesystem,
                permissions=site.permissions,
                output_directory=output_directory,
            ),
            mutations=FileMutations(filesystem),
            shell=site.settings.shell or "/bin/sh",
            ripgrep=find_ripgrep(),
            output_limits=site.settings.tool_output,
        )
        with register_builtins(registry, environment):
            yield registry

    return open_tools
