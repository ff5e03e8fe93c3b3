"""Locations by number, so that an event row stores a small number instead of a path."""

from perdure.ports import Transaction
from perdure.schema import codec
from perdure.schema.location import LocationRef


class LocationNumbers:
    """Cached numbers of Locations; a committed number never changes its meaning."""

    def __init__(self) -> None:
        self._numbers: dict[LocationRef, int] = {}
        self._wires: dict[int, bytes] = {}

    async def number(self, tx: Transaction, ref: LocationRef) -> int:
        """The number of `ref`, assigned if it has none. Call `remember` after the commit."""
        known = self._numbers.get(ref)
        if known is not None:
            return known
        wire = codec.encode(ref).decode()
        await tx.execute(
            "INSERT INTO location (ref) VALUES (:ref) ON CONFLICT DO NOTHING", {"ref": wire}
        )
        rows = await tx.fetch("SELECT number FROM location WHERE ref = :ref", {"ref": wire})
        number = rows[0][0]
        assert isinstance(number, int)
        return number

    def remember(self, ref: LocationRef, number: int) -> None:
        self._numbers[ref] = number

    async def wire(self, tx: Transaction, number: int) -> bytes | None:
        """The JSON of the ref, or None. Only for numbers of committed rows, as it is cached."""
        known = self._wires.get(number)
        if known is None:
            rows = await tx.fetch("SELECT ref FROM location WHERE number = :n", {"n": number})
            if not rows:
                return None
            known = self._wires[number] = str(rows[0][0]).encode()
        return known
