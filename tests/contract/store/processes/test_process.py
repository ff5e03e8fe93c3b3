"""A process that claimed work is known until another process has taken over what it left."""

from functools import partial
from pathlib import Path

from perdure.store.processes import process_table
from tests.fixtures import opened


def lives(process: str) -> bool:
    return process == "alive"


async def test_the_dead_are_known_until_they_are_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path / "p.db") as database:
        for process in ("dead", "alive", "dead", "dead too"):
            await database.write(partial(process_table.register, process=process))
        gone = await database.read(partial(process_table.list_dead, alive=lives))
        assert gone == ["dead", "dead too"]
        await database.write(partial(process_table.remove, processes=gone))
        assert await database.read(partial(process_table.list_dead, alive=lives)) == []
        everyone = await database.read(
            partial(process_table.list_dead, alive=lambda process: False)
        )
        assert everyone == ["alive"]
