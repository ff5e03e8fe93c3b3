"""A scripted provider for several Sessions at once, told apart by their first prompt."""

from collections import deque
from collections.abc import Callable

from tests.support.scripted_provider import Call, Reply, Request, ScriptedProvider, text

Line = Reply | Callable[[Request], Reply]


class SessionScripts:
    """Replies by the marker that a Session's first prompt begins with, in order; then `ok`."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self._parts: dict[str, deque[Line]] = {}
        self.provider = provider
        provider.otherwise = self._reply

    def add(self, marker: str, *lines: Line) -> None:
        self._parts.setdefault(marker, deque()).extend(lines)

    def requests(self, marker: str) -> list[Request]:
        """Those that were made for the Session with this first prompt."""
        return [request for request in self.provider.requests if _marker(request) == marker]

    def _reply(self, request: Request) -> Reply:
        lines = self._parts.get(_marker(request), deque())
        line = lines.popleft() if lines else text("ok")
        return line if isinstance(line, Reply) else line(request)


def task(prompt: str, agent: str = "general", *, id: str | None = None, **fields: object) -> Call:
    """A call of the task tool."""
    given = {"description": f"Look at {prompt}", "prompt": prompt, "subagent_type": agent}
    return Call("task", given | fields, id)


def _marker(request: Request) -> str:
    said = request.texts("user")
    return said[0].partition(" ")[0] if said else ""
