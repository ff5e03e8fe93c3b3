"""Pages of a database that a disk has spoiled."""

from contextlib import closing
from pathlib import Path

from perdure.store import migrate
from perdure.store.database import sqlite_connection


def overwrite_page(path: Path, number: int) -> None:
    """Fill one page of a closed database with rubbish. Pages are counted from 1."""
    size = page_bytes(path)
    with path.open("r+b") as file:
        file.seek((number - 1) * size)
        file.write(b"\xa5" * size)


def page_bytes(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[16:18], "big")


def root_page(path: Path, table: str) -> int:
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        sql = f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'"
        ((root,),) = migrate.fetch_rows(connection, sql)
    assert isinstance(root, int)
    return root
