"""Which simulated processes of one machine are alive, as each of them sees it."""

from collections.abc import Mapping


class LiveProcesses:
    """All processes on one store. A killed one is gone at once."""

    def __init__(self) -> None:
        self._alive: dict[str, None] = {}

    def enter(self, name: str) -> "SimulatedProcesses":
        self._alive[name] = None
        return SimulatedProcesses(name, self)

    def leave(self, name: str) -> None:
        self._alive.pop(name, None)

    def alive(self, name: str) -> bool:
        return name in self._alive

    def names(self) -> frozenset[str]:
        return frozenset(self._alive)


class SimulatedProcesses:
    """Implements ports.Processes. A process never takes itself for dead."""

    def __init__(self, name: str, live: LiveProcesses) -> None:
        self._name = name
        self._live = live

    @property
    def me(self) -> str:
        return self._name

    def alive(self, process: str) -> bool:
        return process == self._name or self._live.alive(process)

    def others(self) -> frozenset[str]:
        return self._live.names() - {self._name}

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {}
