"""Ends streams that are left before their end."""

from collections.abc import AsyncGenerator, AsyncIterator


async def close_stream(stream: AsyncIterator[object]) -> None:
    """Release what `stream` holds now, such as a connection, and not when it is collected."""
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()
