"""How full a model's context is can be seen before it is full, and what is foreseen happens."""

import pytest

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Request, ScriptedProvider, text

LIMIT = {"context": 32_000, "output": 4_000}
PARAGRAPH = "lorem ipsum " * 1_000
"""About 3,000 tokens."""


def configure(folders: ProjectFolders, limit: JsonObject, **settings: object) -> None:
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"]["small"] = {"limit": limit}
    path.write_bytes(codec.encode({**configuration, "model": "fake/small", **settings}))


async def window(api: Api, session: str) -> JsonObject:
    found = await api.get(f"/api/session/{session}/provider-context")
    return found["data"]["window"]


def answer_as_asked(provider: ScriptedProvider) -> None:
    def is_summary(request: Request) -> bool:
        return "tools" not in request.body and request.roles == ["user"]

    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")


@requirement("S141", "S58")
async def test_a_compaction_is_foreseen_for_the_very_turn_that_begins_with_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, LIMIT)
    answer_as_asked(provider)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        sizes: list[int] = []
        foreseen: JsonObject = {"compacts": False}
        while not foreseen["compacts"]:
            assert len(sizes) < 12
            await api.prompt(session, f"read this {PARAGRAPH}", resume=False)
            foreseen = await window(api, session)
            sizes.append(foreseen["tokens"])
            await api.post(f"/api/session/{session}/resume")
            await api.wait(session)
            happened = "compaction.ended" in await api.facts(session)
            assert foreseen["compacts"] == happened
        # Kept free: room for the answer, or the buffer, whichever is more.
        free = max(4_000, min(limits.COMPACTION_BUFFER_TOKENS, 32_000 // 4))
        assert (foreseen["context"], foreseen["requestMax"]) == (32_000, 32_000 - free)
        assert sizes == sorted(sizes)
        assert sizes[-2] <= foreseen["requestMax"] < sizes[-1]
        afterwards = await window(api, session)
        assert not afterwards["compacts"]
        assert afterwards["tokens"] < sizes[-1]


@requirement("S141")
async def test_the_count_of_the_provider_is_believed(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 1_000_000, "output": 4_000})
    counted = {"prompt_tokens": 50_000, "completion_tokens": 1_000}
    provider.then(text("ok", usage=counted))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "hello")
        found = await window(instance.api, session)
    assert 51_000 <= found["tokens"] < 51_100


@requirement("S141")
@pytest.mark.parametrize(
    ("limit", "settings", "known"),
    [(LIMIT, {"compaction": {"auto": False}}, True), ({"output": 4_000}, {}, False)],
    ids=["switched off", "no known context"],
)
async def test_where_no_compaction_comes_by_itself_none_is_foreseen(
    folders: ProjectFolders,
    provider: ScriptedProvider,
    limit: JsonObject,
    settings: JsonObject,
    known: bool,
) -> None:
    configure(folders, limit, **settings)
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.prompt(session, PARAGRAPH * 20, resume=False)
        found = await window(instance.api, session)
    assert not found["compacts"]
    assert found["tokens"] > 32_000
    assert ({"context", "requestMax"} <= found.keys()) is known
