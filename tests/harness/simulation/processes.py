"""Which simulated processes of one machine are alive, as each of them sees it."""


class Neighbourhood:
    """Every process on the store. One that was killed is gone at once."""

    def __init__(self) -> None:
        self._alive: dict[str, None] = {}

    def enter(self, name: str) -> "SimulatedNeighbour":
        self._alive[name] = None
        return SimulatedNeighbour(name, self)

    def leave(self, name: str) -> None:
        self._alive.pop(name, None)

    def alive(self, name: str) -> bool:
        return name in self._alive

    def names(self) -> frozenset[str]:
        return frozenset(self._alive)


class SimulatedNeighbour:
    """Implements ports.Processes. A process never takes itself for dead."""

    def __init__(self, name: str, everyone: Neighbourhood) -> None:
        self._name = name
        self._everyone = everyone

    @property
    def me(self) -> str:
        return self._name

    def alive(self, process: str) -> bool:
        return process == self._name or self._everyone.alive(process)

    def others(self) -> frozenset[str]:
        return self._everyone.names() - {self._name}
