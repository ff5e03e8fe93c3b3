"""The way of a prompt from wake to the provider: few frames, few reads, few commits."""

import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import pytest

import perdure
from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.ports import Transaction
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ScriptedModel, text

FRAMES_MAX: Final = 8
READS_MAX: Final = 3
COMMITS_MAX: Final = 2
PACKAGE: Final = str(Path(perdure.__file__).parent)

T = TypeVar("T")


class Counted:
    """A model that notes what its caller did to reach it."""

    def __init__(self) -> None:
        self._model = ScriptedModel()
        for _ in range(3):
            self._model.turn(text("hello"))
        self.reads = 0
        self.commits = 0
        self.seen: list[tuple[int, int, int]] = []

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        frames = [frame for frame in traceback.extract_stack() if PACKAGE in frame.filename]
        self.seen.append((len(frames), self.reads, self.commits))
        async for batch in self._model(request):
            yield batch


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    read, write = SqliteDatabase.read, SqliteDatabase.write

    async def counted_read(self: SqliteDatabase, job: Callable[[Transaction], Awaitable[T]]) -> T:
        counted.reads += 1
        return await read(self, job)

    async def counted_write(
        self: SqliteDatabase,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        counted.commits += 1
        return await write(self, job, committed=committed)

    monkeypatch.setattr(SqliteDatabase, "read", counted_read)
    monkeypatch.setattr(SqliteDatabase, "write", counted_write)
    return counted


async def test_a_warm_session_reaches_its_provider_by_a_short_way(
    model: Counted, tmp_path: Path
) -> None:
    async with perdure.open(
        str(tmp_path), data_dir=str(tmp_path / "data"), models={"scripted/scripted": model}
    ) as host:
        session = await host.sessions.create(model="scripted/scripted")
        await host.sessions.prompt(session.id, text="hello")
        await host.sessions.wait(session.id)
        # Admitting takes one commit of its own, and waits for nothing that a run does.
        model.reads, model.commits = 0, -1
        await host.sessions.prompt(session.id, text="hello again")
        await host.sessions.wait(session.id)
    frames, reads, commits = model.seen[-1]
    assert frames <= FRAMES_MAX
    assert reads <= READS_MAX
    assert commits <= COMMITS_MAX
