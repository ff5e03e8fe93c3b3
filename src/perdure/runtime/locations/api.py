"""Locations and their files for clients."""

import asyncio
from collections.abc import Callable

from perdure.core import limits
from perdure.core.settings import trust
from perdure.location.location import Location
from perdure.location.registry import LocationRegistry
from perdure.ports import Clock
from perdure.schema.files.fs import EntryType, FileContent, FileEntry, Span
from perdure.schema.live_event import LiveEvent, TrustChanged
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.models.model import ModelInfo, ProviderInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.reference import ReferenceInfo
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.settings.trust import TrustInfo, TrustWish


class Locations:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(
        self,
        locations: LocationRegistry,
        *,
        publish: Callable[[LocationRef, LiveEvent], None] = lambda ref, event: None,
    ) -> None:
        self._locations = locations
        self._publish = publish
        self._told: dict[LocationRef, TrustInfo] = {}
        """What clients know of the trust of open Locations."""

    async def info(self, ref: LocationRef) -> LocationInfo:
        return await self._locations.info(ref)

    async def agents(self, ref: LocationRef) -> tuple[AgentInfo, ...]:
        return (await self._locations.get(ref)).agents.list()

    async def models(self, ref: LocationRef) -> tuple[ModelInfo, ...]:
        return (await self._locations.get(ref)).catalog.models()

    async def providers(self, ref: LocationRef) -> tuple[ProviderInfo, ...]:
        return (await self._locations.get(ref)).catalog.providers()

    async def provider(self, ref: LocationRef, id: str) -> ProviderInfo:
        return (await self._locations.get(ref)).catalog.provider(id)

    async def skills(self, ref: LocationRef) -> tuple[SkillInfo, ...]:
        return (await self._locations.get(ref)).skills.list()

    async def commands(self, ref: LocationRef) -> tuple[CommandInfo, ...]:
        return await asyncio.to_thread((await self._locations.get(ref)).commands.list)

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
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(self, locations: LocationRegistry) -> None:
        self._locations = locations

    async def read(self, ref: LocationRef, path: str, span: Span | None) -> FileContent:
        return await (await self._locations.get(ref)).files.read(path, span)

    async def list(self, ref: LocationRef, path: str) -> tuple[FileEntry, ...]:
        return await (await self._locations.get(ref)).files.list(path)

    async def find(
        self, ref: LocationRef, query: str, *, type: EntryType | None, limit: int | None
    ) -> tuple[FileEntry, ...]:
        location = await self._locations.get(ref)
        return await location.files.find(query, type=type, limit=limit)


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
