"""The way of a prompt from wake to the provider: few frames, few reads, few commits."""

import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import perdure
from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.host.process_locks import SingleProcess
from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.ports import Database, Transaction
from perdure.runtime.app.runtime import Platform, RuntimeSettings, compose
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ManualClock, ScriptedModel, SeededIds, text
from tests.fixtures import SESSION

FRAMES_MAX: Final = 8
READS_MAX: Final = 3
COMMITS_MAX: Final = 2
PACKAGE: Final = str(Path(perdure.__file__).parent)

T = TypeVar("T")


class CountingDatabase:
    """A database that counts what is asked of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reads = 0
        self.commits = 0

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        self.reads += 1
        return await self._database.read(job)

    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        self.commits += 1
        return await self._database.write(job, committed=committed)

    async def empty_log(self) -> bool:
        return await self._database.empty_log()

    async def check_file(self) -> None:
        await self._database.check_file()

    async def changed_elsewhere(self) -> bool:
        return await self._database.changed_elsewhere()


async def test_a_warm_session_reaches_its_provider_by_a_short_way(tmp_path: Path) -> None:
    path = str(tmp_path / "perdure.db")
    migrate.migrate(path)
    scripted = ScriptedModel()
    seen: list[tuple[int, int, int]] = []

    async with SqliteDatabase(path) as real:
        database = CountingDatabase(real)

        async def model(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
            frames = [frame for frame in traceback.extract_stack() if PACKAGE in frame.filename]
            seen.append((len(frames), database.reads, database.commits))
            async for batch in scripted(request):
                yield batch

        settings = RuntimeSettings(
            environment=environment.from_variables({"HOME": str(tmp_path)}),
            data_dir=str(tmp_path),
            default_directory=str(tmp_path),
            providers=(host_provider("test", {"scripted": model}),),
        )
        platform = Platform(
            database=database, processes=SingleProcess(), clock=ManualClock(), ids=SeededIds(1)
        )
        async with compose(settings, platform, path) as runtime:
            sessions = runtime.sessions
            await sessions.create(id=SESSION, model=ModelRef(id="scripted", provider_id="test"))
            for prompt in ("hello", "hello again"):
                scripted.turn(text("hi"))
                # Less one commit: the admission itself, before the wake.
                database.reads, database.commits = 0, -1
                await sessions.prompt(SESSION, PromptInput(text=prompt))
                await sessions.wait(SESSION)
    frames, reads, commits = seen[-1]
    assert 0 < frames <= FRAMES_MAX
    assert 0 < reads <= READS_MAX
    assert 0 < commits <= COMMITS_MAX
