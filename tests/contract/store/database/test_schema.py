"""What the database holds, and what it does not."""

from pathlib import Path

from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.migrate import migrate
from tests.requirements import requirement


@requirement("S151")
async def test_no_workspace_is_kept_that_would_have_to_be_discarded(tmp_path: Path) -> None:
    # A Session only names its workspace; nothing of it is ours to restore or to throw away.
    path = str(tmp_path / "perdure.db")
    migrate(path)
    async with SqliteDatabase(path) as database:
        rows = await database.read(lambda tx: tx.fetch("SELECT name FROM sqlite_schema"))
    names = [str(row[0]) for row in rows]
    assert "session" in names
    assert not [name for name in names if "workspace" in name]
