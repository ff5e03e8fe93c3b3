"""Locations and their files for clients."""

import asyncio
import itertools
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.settings import trust
from perdure.core.settings.settings import Settings
from perdure.llm.request import ToolDefinition
from perdure.location.location import Location
from perdure.location.registry import LocationRegistry
from perdure.location.workspace.language_servers import ServerState
from perdure.ports import Clock
from perdure.schema.errors import InvalidRequestError
from perdure.schema.files.fs import EntryType, FileContent, FileEntry, Span, TextMatches
from perdure.schema.live_event import LiveEvent, TrustChanged
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.models.model import DefaultModel, ModelInfo, ProviderInfo
from perdure.schema.session.session import FileDiff
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.reference import ReferenceInfo
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.settings.trust import TrustInfo, TrustWish

if TYPE_CHECKING:
    from perdure.core.language_server.symbol import Symbol


class Locations:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(
        self,
        locations: LocationRegistry,
        *,
        publish: Callable[[LocationRef, LiveEvent], None] = lambda ref, event: None,
        start_watching: Callable[[], None] = lambda: None,
    ) -> None:
        self._locations = locations
        self._start_watching = start_watching
        self._watching = False
        self._publish = publish
        self._told: dict[LocationRef, TrustInfo] = {}
        """What clients know of the trust of open Locations."""

    async def info(self, ref: LocationRef) -> LocationInfo:
        if not self._watching:
            # With the first use: the engine may be built outside of its event loop.
            self._watching = True
            self._start_watching()
        return await self._locations.info(ref)

    async def agents(self, ref: LocationRef) -> tuple[AgentInfo, ...]:
        return (await self._locations.get(ref)).agents.list()

    async def models(self, ref: LocationRef) -> tuple[ModelInfo, ...]:
        return (await self._locations.get(ref)).catalog.models()

    async def default_model(self, ref: LocationRef) -> DefaultModel:
        return DefaultModel(model=(await self._locations.get(ref)).catalog.default() or UNSET)

    async def providers(self, ref: LocationRef) -> tuple[ProviderInfo, ...]:
        return (await self._locations.get(ref)).catalog.providers()

    async def provider(self, ref: LocationRef, id: str) -> ProviderInfo:
        return (await self._locations.get(ref)).catalog.provider(id)

    async def skills(self, ref: LocationRef) -> tuple[SkillInfo, ...]:
        return (await self._locations.get(ref)).skills.list()

    async def commands(self, ref: LocationRef) -> tuple[CommandInfo, ...]:
        location = await self._locations.get(ref)
        own = await asyncio.to_thread(location.commands.list)
        named = {command.name for command in own}
        prompts = await location.mcp.list_commands()
        return (*own, *(command for command in prompts if command.name not in named))

    async def settings(self, ref: LocationRef) -> Settings:
        return (await self._locations.get(ref)).settings

    async def tools(self, ref: LocationRef) -> tuple[ToolDefinition, ...]:
        """The tools that the default agent is offered."""
        location = await self._locations.get(ref)
        agent = location.agents.select(None)
        rules = () if agent is None else (location.agents.rules(agent.id),)
        return location.tools.registry().materialize(*rules).definitions

    async def language_servers(self, ref: LocationRef) -> tuple[ServerState, ...]:
        """The language servers that were started."""
        return (await self._locations.get(ref)).language_servers.list_started()

    async def references(self, ref: LocationRef) -> tuple[ReferenceInfo, ...]:
        return (await self._locations.get(ref)).references.list()

    async def trust(self, ref: LocationRef) -> TrustInfo:
        return await self._look_at_trust(await self._locations.get(ref))

    async def watch_trust(self, is_heard: Callable[[], bool], clock: Clock) -> None:
        """Tell clients of changes, also of those that other programs make. Runs until cancelled."""
        while True:
            await clock.sleep(limits.TRUST_LOOK_SECONDS)
            if not is_heard():
                self._told.clear()
                continue
            found = self._locations.refresh_open()
            for location in found:
                await self._look_at_trust(location)
            for ref in self._told.keys() - {location.ref for location in found}:
                del self._told[ref]

    async def _look_at_trust(self, location: Location) -> TrustInfo:
        """The trust of a Location; clients are told if they know it otherwise."""
        found = await _read_trust(location)
        known = self._told.get(location.ref)
        self._told[location.ref] = found
        if known is not None and known != found:
            self._publish(location.ref, TrustChanged(trusted=found.trusted, off=found.off))
        return found


class Files:
    """Each method raises InvalidRequestError for a directory that cannot be a Location.

    A person asks, so no rule asks back; but content that a rule denies is not shown (ADR 49).
    """

    def __init__(self, locations: LocationRegistry) -> None:
        self._locations = locations

    async def read(self, ref: LocationRef, path: str, span: Span | None) -> FileContent:
        location = await self._locations.get(ref)
        return await location.files.read(path, span, shows=may_show(location))

    async def list(self, ref: LocationRef, path: str) -> tuple[FileEntry, ...]:
        return await (await self._locations.get(ref)).files.list(path)

    async def list_ignored(
        self, ref: LocationRef, entries: tuple[FileEntry, ...]
    ) -> frozenset[str]:
        """The paths among entries of one folder that ignore files of the Location name."""
        return await (await self._locations.get(ref)).files.list_ignored(entries)

    async def find(
        self, ref: LocationRef, query: str, *, type: EntryType | None, limit: int | None
    ) -> tuple[FileEntry, ...]:
        location = await self._locations.get(ref)
        return await location.files.find(query, type=type, limit=limit)

    async def search(
        self, ref: LocationRef, pattern: str, *, include: str | None, limit: int | None
    ) -> TextMatches:
        location = await self._locations.get(ref)
        return await location.files.search(
            pattern, include=include, limit=limit, shows=may_show(location)
        )

    async def find_symbols(self, ref: LocationRef, query: str) -> "tuple[Symbol, ...]":
        """Symbols below the Location, of the language servers that run there."""
        location = await self._locations.get(ref)
        found = await location.language_servers.find_symbols(query)
        if not found:
            return ()
        root = await location.files.environment.path_access.root()
        shows, inside = may_show(location), root.rstrip("/") + "/"
        shown = (one for one in found if one.path.startswith(inside) and shows(one.path))
        return tuple(itertools.islice(shown, limits.LSP_SYMBOLS_SHOWN_MAX))

    async def hide_denied(
        self, ref: LocationRef, found: tuple[FileDiff, ...]
    ) -> tuple[FileDiff, ...]:
        """The diffs without the patches of files whose content a rule denies to show.

        Without a Location there are no rules to ask, so no patch is shown.
        """
        if not found:
            return ()
        try:
            location = await self._locations.get(ref)
        except InvalidRequestError:
            return tuple(replace(each, patch="") for each in found)
        return await hide_denied(location, found)


async def hide_denied(location: Location, found: tuple[FileDiff, ...]) -> tuple[FileDiff, ...]:
    """As Files.hide_denied."""
    root = await location.files.environment.path_access.root()
    shows = may_show(location)
    return tuple(
        each
        if shows(posixpath.normpath(posixpath.join(root, each.path)))
        else replace(each, patch="")
        for each in found
    )


def may_show(location: Location) -> Callable[[str], bool]:
    """Whether a client may be shown the content of a canonical path: unless a rule denies it.

    The rules are those of the default agent, which every conversation begins with.
    """
    effect = location.permissions.reading(location.agents.select(None), ())
    return lambda path: effect(path) != "deny"


async def _read_trust(location: Location) -> TrustInfo:
    untrusted = await asyncio.to_thread(location.commands.untrusted)
    wishes = (*location.settings.ungranted, *trust.list_ungranted(untrusted))
    off = tuple(
        TrustWish(
            kind=wish.kind,
            path=wish.path.encode(errors="surrogateescape").decode(errors="replace"),
            message=wish.description,
        )
        for wish in wishes
    )
    return TrustInfo(trusted=not off, off=off)
