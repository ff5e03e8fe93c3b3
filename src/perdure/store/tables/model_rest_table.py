"""Models that rest: operational state, shared by all Sessions and processes of one store.

core.models.model_chain decides how long. A row is kept for a while after its rest, because the
next rest depends on it.
"""

from perdure.core import limits
from perdure.core.models.model_chain import Rest
from perdure.ports import Row, Transaction

_COLUMNS = "provider_id, model_id, until, failed, message"


async def list_all(tx: Transaction) -> list[Rest]:
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM model_rest")
    return [_rest(row) for row in rows]


async def put(tx: Transaction, rest: Rest, *, now: int) -> None:
    """Record a rest, and forget those that ended long ago."""
    over = now - round(limits.CHAIN_REST_SECONDS_MAX * 1000)
    await tx.execute("DELETE FROM model_rest WHERE until < :over", {"over": over})
    await tx.execute(
        f"INSERT OR REPLACE INTO model_rest ({_COLUMNS})"
        " VALUES (:provider, :model, :until, :failed, :message)",
        {
            "provider": rest.provider_id,
            "model": rest.model_id,
            "until": rest.until,
            "failed": rest.failed,
            "message": rest.message,
        },
    )


def _rest(row: Row) -> Rest:
    provider, model, until, failed, message = row
    assert isinstance(until, int)
    assert isinstance(failed, int)
    return Rest(
        provider_id=str(provider),
        model_id=str(model),
        until=until,
        failed=failed,
        message=str(message),
    )
