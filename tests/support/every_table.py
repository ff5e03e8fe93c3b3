"""Makes a row of a Session in every table with a session_id, also in tables added later."""

from perdure.ports import SqlValue, Transaction
from perdure.schema.ids import SessionID


async def naming_sessions(tx: Transaction) -> list[str]:
    rows = await tx.fetch(
        "SELECT t.name FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c"
        " WHERE t.type = 'table' AND c.name = 'session_id' ORDER BY t.name"
    )
    return [str(name) for (name,) in rows]


async def occupy(tx: Transaction, session_id: SessionID) -> None:
    """Insert a row into each of them, unless there is one."""
    for table in await naming_sessions(tx):
        columns = await tx.fetch(
            'SELECT name, type, "notnull", dflt_value FROM pragma_table_info(:table)',
            {"table": table},
        )
        values = {
            str(name): _value(str(name), str(kind), session_id)
            for name, kind, required, default in columns
            if required and default is None
        }
        names = ", ".join(values)
        places = ", ".join(f":{name}" for name in values)
        await tx.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", values)


async def occupied(tx: Transaction, session_id: SessionID) -> list[str]:
    """The tables that hold a row of the Session."""
    return [
        table
        for table in await naming_sessions(tx)
        if await tx.fetch(f"SELECT 1 FROM {table} WHERE session_id = :id", {"id": session_id})
    ]


def _value(name: str, kind: str, session_id: SessionID) -> SqlValue:
    match name, kind:
        case "session_id", _:
            return session_id
        case _, "INTEGER":
            return 7
        case _, "BLOB":
            return b"{}"
        case _:
            return f"{name} of {session_id}"
