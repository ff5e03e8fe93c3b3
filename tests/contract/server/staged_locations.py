"""One Location that has a little of everything, behind the protocol the server asks for."""

from perdure.schema.errors import InvalidRequestError, ProviderNotFoundError
from perdure.schema.ids import ProjectID
from perdure.schema.location import LocationInfo, LocationRef, ProjectRef
from perdure.schema.models.model import ApiInfo, ModelInfo, ProviderInfo, RequestInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.reference import GitReference, ReferenceInfo
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.settings.trust import TrustInfo, TrustWish


class StagedLocations:
    async def info(self, ref: LocationRef) -> LocationInfo:
        if ref.directory == "/missing":
            raise InvalidRequestError("Directory does not exist: /missing", field="location")
        return LocationInfo(
            directory=ref.directory,
            project=ProjectRef(id=ProjectID("global"), directory="/"),
            workspace_id=ref.workspace_id,
        )

    async def agents(self, ref: LocationRef) -> tuple[AgentInfo, ...]:
        agent = AgentInfo(
            id="build",
            request=RequestInfo(headers={}, body={}),
            mode="primary",
            hidden=False,
            permissions=(),
        )
        return (agent,)

    async def models(self, ref: LocationRef) -> tuple[ModelInfo, ...]:
        return ()

    async def skills(self, ref: LocationRef) -> tuple[SkillInfo, ...]:
        return (SkillInfo(name="tea", location="/skills/tea.md", content="Boil.", slash=True),)

    async def commands(self, ref: LocationRef) -> tuple[CommandInfo, ...]:
        return (CommandInfo(name="ship", template="Ship it."),)

    async def trust(self, ref: LocationRef) -> TrustInfo:
        wish = TrustWish(kind="program", path="/work/opencode.json", message="run make")
        return TrustInfo(trusted=False, off=(wish,))

    async def references(self, ref: LocationRef) -> tuple[ReferenceInfo, ...]:
        source = GitReference(repository="ada/notes", branch="main")
        return (ReferenceInfo(name="notes", path="/repos/notes", source=source),)

    async def providers(self, ref: LocationRef) -> tuple[ProviderInfo, ...]:
        return (await self.provider(ref, "fake"),)

    async def provider(self, ref: LocationRef, id: str) -> ProviderInfo:
        if id != "fake":
            raise ProviderNotFoundError(id)
        return ProviderInfo(
            id=id,
            name="Fake",
            api=ApiInfo(type="native"),
            request=RequestInfo(headers={}, body={}),
        )
