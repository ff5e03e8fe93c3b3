"""The embedded host for programs without an event loop."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Unpack

from perdure.client.blocking import Blocking
from perdure.client.blocking_client import BlockingClient
from perdure.embedded.host import Host, HostOptions, open_host
from perdure.runtime.plugins.plugins import Plugins
from perdure.tools.api.registry import ToolRegistry


class BlockingHost(BlockingClient):
    """A Host whose calls block until their answers are there. For one thread."""

    def __init__(self, host: Host, blocking: Blocking) -> None:
        super().__init__(host, blocking)
        self.tools: ToolRegistry = host.tools
        """`with host.tools.register(tool):` offers a tool to every Session meanwhile."""
        self.plugins: Plugins = host.plugins
        """`host.plugins.add(plugin)` adds a plugin, or replaces the one of that name."""


@contextmanager
def open_blocking_host(
    directory: str = ".", **options: Unpack[HostOptions]
) -> Generator[BlockingHost]:
    """As `perdure.open`, for a program without an event loop.

    ```python
    with perdure.open_blocking(".") as host:
        print(host.ask("list the files here", model="demo/demo"))
    ```

    The host works while a call waits or an event stream is read, and stands still in between:
    `host.sessions.wait(session.id)` lets a Session run to its end.
    """
    with Blocking() as blocking:
        yield BlockingHost(blocking.enter(open_host(directory, **options)), blocking)
