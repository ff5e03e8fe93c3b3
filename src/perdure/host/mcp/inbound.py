"""What a server sends, before the package `mcp` sees it.

The package compiles the output schema of a tool and checks results against it. A schema may hold a
regular expression that takes for ever, so output schemas are removed here: core.mcp.result reads
results of any shape.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self, cast

import mcp_types as types
import msgspec
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage

from perdure.schema import codec
from perdure.schema.value import Value

_OUTPUT_SCHEMA: Final = "outputSchema"


def checked(message: types.JSONRPCMessage) -> types.JSONRPCMessage:
    """The message without output schemas of tools."""
    if not isinstance(message, types.JSONRPCResponse):
        return message
    tools = message.result.get("tools")
    if isinstance(tools, list):
        for tool in cast("list[Any]", tools):
            if isinstance(tool, dict):
                cast("dict[str, Any]", tool).pop(_OUTPUT_SCHEMA, None)
    return message


def unreadable(line: bytes) -> types.JSONRPCMessage | None:
    """An error in the place of an answer that cannot be read; None if the line is no answer."""
    try:
        head = codec.decode(_Head, line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if head.id is None or head.method is not None:
        return None
    error = types.ErrorData(code=types.PARSE_ERROR, message="the server's answer cannot be read")
    return types.JSONRPCError(jsonrpc="2.0", id=head.id, error=error)


class _Head(Value):
    """The fields by which an answer finds its request."""

    id: int | str | None = None
    method: str | None = None


@asynccontextmanager
async def checked_streams(
    transport: AbstractAsyncContextManager[TransportStreams],
) -> AsyncGenerator[TransportStreams]:
    """The streams of a transport of the package, with each message checked."""
    async with transport as (incoming, outgoing):
        yield _Checked(incoming), outgoing


class _Checked:
    """A stream of checked messages."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception]) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        item = await self._inner.receive()
        if isinstance(item, SessionMessage):
            item.message = checked(item.message)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item = await anext(aiter(self._inner))
        if isinstance(item, SessionMessage):
            item.message = checked(item.message)
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
