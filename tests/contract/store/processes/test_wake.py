"""A run asked of another process is noticed there, also when an old request was never answered."""

from functools import partial
from pathlib import Path

from perdure.store.processes import lease_table, wake_table
from tests.fixtures import OTHER, SESSION, opened


async def test_every_request_is_a_change_that_others_notice(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    async with opened(path) as asking, opened(path) as asked:
        await asked.changed_elsewhere()
        for _ in range(3):
            await asking.write(partial(wake_table.request, session_id=SESSION))
            assert await asked.changed_elsewhere()
            assert not await asked.changed_elsewhere()
        waiting = await asked.read(
            partial(wake_table.list_for_process, process="me", alive=lambda process: True)
        )
        assert waiting == [SESSION]


async def test_a_request_is_answered_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "p.db") as database:
        for session_id in (SESSION, OTHER):
            assert not await database.read(partial(wake_table.is_requested, session_id=session_id))
            await database.write(partial(wake_table.request, session_id=session_id))
        await database.write(partial(wake_table.clear, session_id=SESSION))
        assert not await database.read(partial(wake_table.is_requested, session_id=SESSION))
        assert await database.read(partial(wake_table.is_requested, session_id=OTHER))


async def test_each_request_is_answered_by_who_holds_its_session(tmp_path: Path) -> None:
    def lives(process: str) -> bool:
        return process in ("me", "them")

    async with opened(tmp_path / "p.db") as database:
        for session_id, process in ((SESSION, "them"), (OTHER, "me")):
            await database.write(partial(wake_table.request, session_id=session_id))
            await database.write(
                partial(lease_table.hold, session_id=session_id, process=process, alive=lives)
            )
        for process, session_id in (("them", SESSION), ("me", OTHER)):
            found = await database.read(
                partial(wake_table.list_for_process, process=process, alive=lives)
            )
            assert found == [session_id]
