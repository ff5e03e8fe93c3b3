"""The stdio transport of MCP over a process of ours: one JSON-RPC message in each line.

The process leads its own group, is recorded, and is found and ended after a crash, as all children
are. It is first asked to exit by closing its input, and killed when it does not.

Invariant: when the scope ends, the process has ended. What it sends is bounded: a line that is too
long, a flood of bytes or of messages end the connection.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

import anyio
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from perdure.core import limits
from perdure.host.mcp import inbound
from perdure.host.process.rate_meter import RateMeter
from perdure.ports import PipedProcess, PipedProcesses
from perdure.ports.mcp import McpError, McpProcess

logger = logging.getLogger(__name__)

_END_OF_LINE: Final = b"\n"
_ENDED: Final = "it ended by itself; to see why, run its command in a terminal"


@asynccontextmanager
async def stdio_streams(
    target: McpProcess, processes: PipedProcesses, closed: Callable[[str], None]
) -> AsyncGenerator[TransportStreams]:
    """Start the process and yield its streams; `closed` is called once, with the reason.

    Raises McpError if it cannot be started.
    """
    channel = _Channel(closed)
    try:
        process = await processes.start(
            target.arguments,
            directory=target.directory,
            environment=target.environment,
            heard=channel.hear,
            ended=channel.end,
        )
    except (OSError, ValueError) as error:
        channel.close()
        raise McpError(f"{target.arguments[0]} could not be started: {error}") from error
    channel.process = process
    try:
        yield channel.incoming, _Outgoing(channel)
    finally:
        channel.is_stopping = True
        channel.close()
        await _stop(process, channel)


class _Channel:
    """Turns the bytes of the process into messages."""

    def __init__(self, closed: Callable[[str], None]) -> None:
        self.process: PipedProcess | None = None
        self.over = asyncio.Event()
        self.is_stopping = False
        self._closed = closed
        self._deliver, self.incoming = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](limits.MCP_MESSAGES_WAITING_MAX)
        self._meter = RateMeter(limits.MCP_HEARD_BYTES_MAX)
        self._held = bytearray()

    def hear(self, data: bytes) -> None:
        if self._meter.exceeds_with(len(data)):
            self.fail("it sends too much")
            return
        *lines, rest = data.split(_END_OF_LINE)
        if not lines:
            self._hold(rest)
            return
        lines[0] = bytes(self._held) + lines[0]
        self._held.clear()
        for line in lines:
            if self.over.is_set():
                return
            self._receive(line.strip())
        self._hold(rest)

    def end(self) -> None:
        self._close(_ENDED)

    def close(self) -> None:
        """Drop the messages that were not handled."""
        self.incoming.close()
        self._deliver.close()

    def fail(self, why: str) -> None:
        self._close(why)
        if self.process is not None:
            self.process.kill()

    def _hold(self, rest: bytes) -> None:
        self._held += rest
        if len(self._held) > limits.MCP_MESSAGE_BYTES_MAX:
            self.fail("it sent a message that is too long")

    def _receive(self, line: bytes) -> None:
        if not line:
            return
        try:
            message = inbound.checked(types.jsonrpc_message_adapter.validate_json(line))
        except ValueError:
            message = inbound.unreadable(line)
            if message is None:
                # Programs print notes to their output, which is for messages alone.
                logger.debug("an MCP server sent a line that is no message")
                return
        try:
            self._deliver.send_nowait(SessionMessage(message))
        except anyio.WouldBlock:
            self.fail("it sends messages faster than they can be handled")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    def _close(self, why: str) -> None:
        if not self.over.is_set():
            self.over.set()
            self._deliver.close()
            if not self.is_stopping:
                self._closed(why)


class _Outgoing:
    """The stream that the package writes its messages to. It never waits."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel

    async def send(self, item: SessionMessage, /) -> None:
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        process = self._channel.process
        if process is None or not process.send(data + _END_OF_LINE):
            self._channel.fail("it ended, or does not read what it is told")
            raise anyio.BrokenResourceError

    async def aclose(self) -> None:
        """The process is stopped by the scope that started it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _stop(process: PipedProcess, channel: _Channel) -> None:
    process.close_input()
    try:
        async with asyncio.timeout(limits.MCP_STOP_SECONDS_MAX):
            await channel.over.wait()
    except TimeoutError:
        logger.info("an MCP server did not exit and was killed")
    finally:
        # Also what it has started, and also if this task is cancelled while it waits.
        process.kill()
    await process.gone()
