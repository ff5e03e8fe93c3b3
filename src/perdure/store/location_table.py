"""Locations by number: events name theirs in a byte instead of a path."""

from perdure.ports import Database, Transaction
from perdure.schema import codec
from perdure.schema.location import LocationRef


class LocationNumbers:
    """Numbers never change meaning, so what was committed or read once is remembered."""

    def __init__(self) -> None:
        self._numbers: dict[LocationRef, int] = {}
        self._wires: dict[int, bytes] = {}

    async def number(self, database: Database, ref: LocationRef) -> int:
        known = self._numbers.get(ref)
        if known is None:
            # In a transaction of its own: what may still be rolled back must not be remembered.
            known = await database.write(lambda tx: _numbered(tx, codec.encode(ref).decode()))
            self._numbers[ref] = known
        return known

    async def wire(self, tx: Transaction, number: int) -> bytes:
        """The JSON of the ref."""
        known = self._wires.get(number)
        if known is None:
            rows = await tx.fetch("SELECT ref FROM location WHERE number = :n", {"n": number})
            known = self._wires[number] = str(rows[0][0]).encode()
        return known


async def _numbered(tx: Transaction, ref: str) -> int:
    await tx.execute(
        "INSERT INTO location (ref) VALUES (:ref) ON CONFLICT DO NOTHING", {"ref": ref}
    )
    rows = await tx.fetch("SELECT number FROM location WHERE ref = :ref", {"ref": ref})
    number = rows[0][0]
    assert isinstance(number, int)
    return number
