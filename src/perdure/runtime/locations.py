"""Locations as clients see them."""

import asyncio

from perdure.location.location_map import LocationMap
from perdure.schema.agent import AgentInfo
from perdure.schema.command import CommandInfo
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.model import ModelInfo, ProviderInfo
from perdure.schema.reference import ReferenceInfo
from perdure.schema.skill import SkillInfo


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

    async def skills(self, ref: LocationRef) -> tuple[SkillInfo, ...]:
        return (await self._locations.get(ref)).skills.list()

    async def commands(self, ref: LocationRef) -> tuple[CommandInfo, ...]:
        return await asyncio.to_thread((await self._locations.get(ref)).commands.list)

    async def references(self, ref: LocationRef) -> tuple[ReferenceInfo, ...]:
        return (await self._locations.get(ref)).references.list()
