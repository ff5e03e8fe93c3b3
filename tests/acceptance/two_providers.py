"""A server with two providers: the scripted one, and one more that speaks another wire protocol."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import DIALECTS, Dialect, configured
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

FAKE: JsonObject = {"id": "fake-model", "providerID": "fake"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Sessions are of the other provider's model, unless they are created with `FAKE`."""

    api: Api
    speaks: Dialect
    other: ScriptedProvider
    fake: ScriptedProvider

    async def switch(self, session: str, model: JsonObject) -> None:
        await self.api.post(f"/api/session/{session}/model", {"model": model})

    def accepted(self, number: int) -> list[JsonObject]:
        """The conversation of that request to the other, which breaks none of its rules."""
        request = self.other.requests[number]
        assert self.speaks.faults(request) == []
        return request.body[self.speaks.conversation]


@asynccontextmanager
async def paired(
    dialect: str, root: Path, fake: ScriptedProvider, **packages: str
) -> AsyncGenerator[Pair]:
    """`packages` are providers that reach the other one too, each with a model `deployed`."""
    speaks = DIALECTS[dialect]
    async with scripted_provider() as other:
        providers = {
            "fake": configured(DIALECTS["openai-chat"].package, fake, "fake-model"),
            speaks.name: speaks.entry(other),
        }
        more = {name: configured(package, other, "deployed") for name, package in packages.items()}
        model = f"{speaks.name}/{speaks.model_id}"
        folders = make_folders(root, fake, providers=providers | more, model=model)
        async with running(folders) as instance:
            yield Pair(instance.api, speaks, other, fake)
