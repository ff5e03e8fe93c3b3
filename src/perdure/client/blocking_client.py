"""The client for programs without an event loop.

Streams are generators: the first step opens the request, and leaving the generator closes it.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from perdure.client.blocking import Blocking
from perdure.client.client import Client, connect
from perdure.client.generated.blocking_groups import BlockingGroups
from perdure.client.wire import AnyTransport


class BlockingClient(BlockingGroups):
    """A Client whose calls block until their answers are there. For one thread."""

    def __init__(self, client: Client, blocking: Blocking) -> None:
        super().__init__(client, blocking)


@contextmanager
def connect_blocking(
    url: str,
    *,
    password: str | None = None,
    username: str = "opencode",
    headers: Mapping[str, str] | None = None,
    transport: AnyTransport | None = None,
) -> Generator[BlockingClient]:
    """As `perdure.connect`, for a program without an event loop.

    ```python
    with perdure.connect_blocking("http://127.0.0.1:4096") as client:
        session = client.sessions.create(model="demo/demo")
    ```
    """
    with Blocking() as blocking:
        client = connect(
            url, password=password, username=username, headers=headers, transport=transport
        )
        yield BlockingClient(blocking.enter(client), blocking)
