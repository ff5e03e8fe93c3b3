"""A Location, its trust, and what it offers: agents, models, skills, references, commands."""

from typing import Final

from perdure.protocol import location
from perdure.protocol.models import catalog
from perdure.protocol.settings import agent, command, reference, skill
from perdure.schema.location import LocationInfo
from perdure.schema.models.model import DefaultModel, ModelInfo, ProviderInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.reference import ReferenceInfo
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.settings.trust import TrustInfo
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> LocationInfo:
    return await call.runtime.locations.info(call.location())


async def get_trust(call: Call[None, None]) -> TrustInfo:
    return await call.runtime.locations.trust(call.location())


async def list_agents(call: Call[None, None]) -> tuple[AgentInfo, ...]:
    return await call.runtime.locations.agents(call.location())


async def list_models(call: Call[None, None]) -> tuple[ModelInfo, ...]:
    return await call.runtime.locations.models(call.location())


async def default_model(call: Call[None, None]) -> DefaultModel:
    return await call.runtime.locations.default_model(call.location())


async def list_providers(call: Call[None, None]) -> tuple[ProviderInfo, ...]:
    return await call.runtime.locations.providers(call.location())


async def get_provider(call: Call[None, None]) -> ProviderInfo:
    return await call.runtime.locations.provider(call.location(), call.params["providerID"])


async def list_skills(call: Call[None, None]) -> tuple[SkillInfo, ...]:
    return await call.runtime.locations.skills(call.location())


async def list_references(call: Call[None, None]) -> tuple[ReferenceInfo, ...]:
    return await call.runtime.locations.references(call.location())


async def list_commands(call: Call[None, None]) -> tuple[CommandInfo, ...]:
    return await call.runtime.locations.commands(call.location())


HANDLERS: Final[Handlers] = {
    location.GET.operation_id: get,
    location.TRUST.operation_id: get_trust,
    agent.LIST.operation_id: list_agents,
    catalog.LIST_MODELS.operation_id: list_models,
    catalog.DEFAULT_MODEL.operation_id: default_model,
    catalog.LIST_PROVIDERS.operation_id: list_providers,
    catalog.GET_PROVIDER.operation_id: get_provider,
    skill.LIST.operation_id: list_skills,
    reference.LIST.operation_id: list_references,
    command.LIST.operation_id: list_commands,
}
