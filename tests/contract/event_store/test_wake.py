"""A run asked of another process is noticed there, also when an old request was never answered."""

from functools import partial
from pathlib import Path

from perdure.store import wake_table
from tests.fixtures import SESSION, opened


async def test_every_request_is_a_change_that_others_notice(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    async with opened(path) as asking, opened(path) as asked:
        await asked.changed_elsewhere()
        for _ in range(3):
            await asking.write(partial(wake_table.request, session_id=SESSION))
            assert await asked.changed_elsewhere()
            assert not await asked.changed_elsewhere()
        waiting = await asked.read(
            partial(wake_table.answerable, process="me", alive=lambda process: True)
        )
        assert waiting == [SESSION]
