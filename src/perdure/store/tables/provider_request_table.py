"""Requests to providers with configured limits: operational state, shared by all processes.

core.models.provider_limits decides from these rows. A row is written before its request is sent,
and removed a minute after the request has ended. One that a dead process left counts as ended.
"""

from collections.abc import Callable

from perdure.core.models import provider_limits
from perdure.core.models.provider_limits import WINDOW_MILLIS, ProviderLimits, ProviderUse
from perdure.ports import Transaction


async def begin(
    tx: Transaction,
    provider_id: str,
    allowed: ProviderLimits,
    *,
    tokens: int,
    process: str,
    alive: Callable[[str], bool],
    now: int,
) -> tuple[int | None, int]:
    """Record a request that goes out now: its number, and 0. If it may not: None, and the wait."""
    await _settle_dead(tx, alive, now=now)
    wait = await find_wait(tx, provider_id, allowed, tokens=tokens, now=now)
    if wait > 0:
        return None, wait
    await tx.execute(
        "INSERT INTO provider_request (provider_id, process, begun, tokens)"
        " VALUES (:provider, :process, :now, :tokens)",
        {"provider": provider_id, "process": process, "now": now, "tokens": tokens},
    )
    rows = await tx.fetch("SELECT last_insert_rowid()")
    number = rows[0][0]
    assert isinstance(number, int)
    return number, 0


async def find_wait(
    tx: Transaction, provider_id: str, allowed: ProviderLimits, *, tokens: int, now: int
) -> int:
    """How long a request has to wait, in milliseconds."""
    rows = await tx.fetch(
        "SELECT begun, ended, tokens FROM provider_request WHERE provider_id = :provider",
        {"provider": provider_id},
    )
    uses: list[ProviderUse] = []
    for begun, ended, counted in rows:
        assert isinstance(begun, int)
        assert isinstance(counted, int)
        assert ended is None or isinstance(ended, int)
        uses.append(ProviderUse(begun=begun, ended=ended, tokens=counted))
    return provider_limits.wait_millis(uses, allowed, tokens=tokens, now=now)


async def end(tx: Transaction, number: int, *, tokens: int | None, now: int) -> None:
    """The request has ended; `tokens` is what the provider counted, if it did."""
    await tx.execute(
        "UPDATE provider_request SET ended = :now, tokens = coalesce(:tokens, tokens)"
        " WHERE id = :id",
        {"id": number, "tokens": tokens, "now": now},
    )


async def _settle_dead(tx: Transaction, alive: Callable[[str], bool], *, now: int) -> None:
    running = await tx.fetch("SELECT DISTINCT process FROM provider_request WHERE ended IS NULL")
    for (process,) in running:
        if not alive(str(process)):
            await tx.execute(
                "UPDATE provider_request SET ended = :now WHERE ended IS NULL AND process = :name",
                {"now": now, "name": str(process)},
            )
    # The second condition: rows of before the clock was set back.
    await tx.execute(
        "DELETE FROM provider_request WHERE ended <= :old"
        " OR (ended IS NOT NULL AND begun > :ahead)",
        {"old": now - WINDOW_MILLIS, "ahead": now + WINDOW_MILLIS},
    )
