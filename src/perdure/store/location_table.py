"""Locations by number: events name theirs in a byte instead of a path."""

from perdure.ports import Transaction
from perdure.schema import codec
from perdure.schema.location import LocationRef


class LocationNumbers:
    """Numbers never change meaning, so what was read once is remembered."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._refs: dict[int, bytes] = {}

    async def number(self, tx: Transaction, ref: LocationRef) -> int:
        wire = codec.encode(ref)
        known = self._numbers.get(wire)
        if known is not None:
            return known
        text = wire.decode()
        await tx.execute(
            "INSERT INTO location (ref) VALUES (:ref) ON CONFLICT DO NOTHING", {"ref": text}
        )
        rows = await tx.fetch("SELECT number FROM location WHERE ref = :ref", {"ref": text})
        number = rows[0][0]
        assert isinstance(number, int)
        # Not remembered yet: this transaction may still be rolled back.
        return number

    async def wire(self, tx: Transaction, number: int) -> bytes:
        """The JSON of the ref."""
        known = self._refs.get(number)
        if known is None:
            rows = await tx.fetch("SELECT ref FROM location WHERE number = :n", {"n": number})
            known = self._refs[number] = str(rows[0][0]).encode()
            self._numbers[known] = number
        return known
