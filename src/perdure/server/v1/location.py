"""The directory of a V1 request, and what applies there: project, agents, commands, models."""

import re
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Final, TypeVar

from msgspec import UNSET, structs

from perdure.protocol.v1 import catalog, location
from perdure.protocol.v1.catalog import (
    V1Api,
    V1AuthMethod,
    V1Capabilities,
    V1ConfigProviders,
    V1Cost,
    V1Media,
    V1Model,
    V1Provider,
    V1ProviderList,
    V1ProviderSource,
)
from perdure.protocol.v1.location import (
    V1AgentInfo,
    V1Command,
    V1Paths,
    V1Project,
    V1ProjectDirectory,
    V1ProjectTime,
    V1Skill,
)
from perdure.protocol.v1.message import V1ModelChoice
from perdure.protocol.v1.rule import V1Rule
from perdure.schema.errors import NotFoundError
from perdure.schema.location import LocationRef, ProjectInfo
from perdure.schema.models.integration import (
    EnvConnection,
    EnvMethod,
    IntegrationInfo,
    KeyMethod,
    OAuthMethod,
)
from perdure.schema.models.model import CacheCost, ModelInfo, ProviderInfo
from perdure.server import location_context
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handlers

QueryT = TypeVar("QueryT", bound=Decoded)
BodyT = TypeVar("BodyT", bound=Decoded)

_BUILT_IN_AGENTS: Final = frozenset(
    {"build", "plan", "general", "explore", "compaction", "title", "summary"}
)
_HINTS: Final = re.compile(r"\$(?:ARGUMENTS|\d)")


def find_named(call: Call[Decoded, Decoded]) -> LocationRef | None:
    """The directory that the query or a header names."""
    given = call.request.fields.get("directory")
    if given and given[0]:
        return location_context.check(LocationRef(given[0]))
    return call.named_location()


def resolve(call: Call[Decoded, Decoded]) -> LocationRef:
    return find_named(call) or LocationRef(call.settings.default_directory)


def placed(call: Call[QueryT, BodyT]) -> Call[QueryT, BodyT]:
    """The call as V2 handlers take it: with the directory that V1 names."""
    return structs.replace(call, found=resolve(call))


async def paths(call: Call[None, None]) -> V1Paths:
    found = await call.runtime.locations.info(resolve(call))
    environment = call.runtime.environment
    state = str(PurePath(call.runtime.database_path).parent)
    root = found.project.directory
    return V1Paths(environment.home, state, environment.config_dir, root, found.directory)


async def current_project(call: Call[None, None]) -> V1Project:
    return _project(await call.runtime.projects.current(resolve(call)))


async def projects(call: Call[None, None]) -> tuple[V1Project, ...]:
    return tuple(map(_project, await call.runtime.projects.list(resolve(call))))


async def project_directories(call: Call[None, None]) -> tuple[V1ProjectDirectory, ...]:
    for found in await call.runtime.projects.list(resolve(call)):
        if found.id == call.params["projectID"]:
            return tuple(map(V1ProjectDirectory, found.directories))
    raise NotFoundError(f"No Session works in project {call.params['projectID'][:200]}")


def _project(found: ProjectInfo) -> V1Project:
    others = tuple(root for root in found.directories if root != found.directory)
    time = V1ProjectTime(found.time.created, found.time.updated)
    return V1Project(found.id, found.directory, time, others, found.vcs)


async def agents(call: Call[None, None]) -> tuple[V1AgentInfo, ...]:
    return tuple(
        V1AgentInfo(
            name=agent.id,
            mode=agent.mode,
            native=agent.id in _BUILT_IN_AGENTS,
            hidden=agent.hidden,
            permission=tuple(V1Rule(r.action, r.resource, r.effect) for r in agent.permissions),
            options={},
            description=agent.description,
            color=agent.color,
            model=UNSET
            if agent.model is UNSET
            else V1ModelChoice(agent.model.provider_id, agent.model.id),
            prompt=agent.system,
            steps=agent.steps,
        )
        for agent in await call.runtime.locations.agents(resolve(call))
    )


async def commands(call: Call[None, None]) -> tuple[V1Command, ...]:
    return tuple(
        V1Command(
            name=command.name,
            template=command.template,
            source="command",
            hints=tuple(dict.fromkeys(_HINTS.findall(command.template))),
            description=command.description,
            agent=command.agent,
            model=UNSET
            if command.model is UNSET
            else f"{command.model.provider_id}/{command.model.id}",
            subtask=command.subtask,
        )
        for command in await call.runtime.locations.commands(resolve(call))
    )


async def skills(call: Call[None, None]) -> tuple[V1Skill, ...]:
    found = await call.runtime.locations.skills(resolve(call))
    return tuple(V1Skill(s.name, s.location, s.content, s.description) for s in found)


async def config_providers(call: Call[None, None]) -> V1ConfigProviders:
    found = await _providers(call)
    return V1ConfigProviders(found.all, found.default)


async def providers(call: Call[None, None]) -> V1ProviderList:
    return await _providers(call)


def shown_methods(found: IntegrationInfo) -> tuple[OAuthMethod | KeyMethod, ...]:
    """The methods that a person can choose, in the order in which V1 numbers them."""
    return tuple(method for method in found.methods if not isinstance(method, EnvMethod))


async def auth_methods(call: Call[None, None]) -> dict[str, tuple[V1AuthMethod, ...]]:
    found = await call.runtime.integrations.list(resolve(call))
    return {
        each.id: tuple(
            V1AuthMethod("oauth", method.label)
            if isinstance(method, OAuthMethod)
            else V1AuthMethod("api", method.label or "API key")
            for method in shown_methods(each)
        )
        for each in found
    }


async def _providers(call: Call[None, None]) -> V1ProviderList:
    where = resolve(call)
    listed = await call.runtime.locations.providers(where)
    models: dict[str, dict[str, V1Model]] = {}
    for model in await call.runtime.locations.models(where):
        models.setdefault(model.provider_id, {})[model.id] = _model(model)
    logins = {each.id: each for each in await call.runtime.integrations.list(where)}
    configured = (await call.runtime.locations.settings(where)).providers
    shown = tuple(
        _provider(p, models[p.id], logins.get(p.id), configured=p.id in configured)
        for p in listed
        if p.id in models
    )
    default = {p.id: next(iter(p.models)) for p in shown}
    chosen = (await call.runtime.locations.default_model(where)).model
    if chosen is not UNSET and chosen.id in models.get(chosen.provider_id, {}):
        default[chosen.provider_id] = chosen.id
    return V1ProviderList(shown, default, tuple(default))


def _provider(
    found: ProviderInfo,
    models: dict[str, V1Model],
    login: IntegrationInfo | None,
    *,
    configured: bool,
) -> V1Provider:
    methods = () if login is None else login.methods
    names = (name for it in methods if isinstance(it, EnvMethod) for name in it.names)
    source: V1ProviderSource = "config" if configured else "custom"
    if login is not None and login.connections:
        source = "env" if isinstance(login.connections[0], EnvConnection) else "api"
    return V1Provider(found.id, found.name, source, tuple(names), {}, models)


def _model(model: ModelInfo) -> V1Model:
    able = model.capabilities
    cost = model.cost[0] if model.cost else None
    return V1Model(
        id=model.id,
        provider_id=model.provider_id,
        name=model.name,
        api=V1Api(model.api.id or model.id, model.api.url or "", model.api.package or ""),
        capabilities=V1Capabilities(
            temperature=True,
            reasoning=bool(model.variants),
            attachment="image" in able.input,
            toolcall=able.tools,
            input=_media(able.input),
            output=_media(able.output),
            interleaved=False,
        ),
        cost=V1Cost(0, 0, CacheCost(0, 0))
        if cost is None
        else V1Cost(cost.input, cost.output, cost.cache),
        limit=model.limit,
        status=model.status,
        options={},
        headers={},
        variants={variant.id: {} for variant in model.variants},
        release_date=_date(model.time.released),
        family=model.family,
    )


def _date(millis: float) -> str:
    """The day in UTC; empty where it is not known."""
    if millis <= 0:
        return ""
    return datetime.fromtimestamp(millis / 1_000, UTC).date().isoformat()


def _media(kinds: tuple[str, ...]) -> V1Media:
    return V1Media(
        text="text" in kinds,
        audio="audio" in kinds,
        image="image" in kinds,
        video="video" in kinds,
        pdf="pdf" in kinds,
    )


HANDLERS: Final[Handlers] = {
    location.PATHS.operation_id: paths,
    location.CURRENT_PROJECT.operation_id: current_project,
    location.PROJECTS.operation_id: projects,
    location.PROJECT_DIRECTORIES.operation_id: project_directories,
    location.AGENTS.operation_id: agents,
    location.COMMANDS.operation_id: commands,
    location.SKILLS.operation_id: skills,
    catalog.CONFIG_PROVIDERS.operation_id: config_providers,
    catalog.PROVIDERS.operation_id: providers,
    catalog.AUTH_METHODS.operation_id: auth_methods,
}
