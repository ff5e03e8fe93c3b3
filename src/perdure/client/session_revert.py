"""The `sessions.revert` group: go back to a message, and then keep to it or not."""

from perdure.client.wire import CallOptions, Wire, data_of, present, segment
from perdure.schema.codec import JsonObject


class SessionRevert:
    """A staged revert hides nothing yet. The next prompt commits it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def stage(
        self,
        session_id: str,
        message_id: str,
        *,
        files: bool | None = None,
        options: CallOptions | None = None,
    ) -> JsonObject:
        """Make a message the last that will stay; staging again moves the boundary."""
        body = present({"messageID": message_id, "files": files})
        return data_of(await self._wire.post(_path(session_id, "stage"), body, options=options))

    async def clear(self, session_id: str, *, options: CallOptions | None = None) -> None:
        """Keep everything. Without a staged revert this does nothing."""
        await self._wire.command(_path(session_id, "clear"), options=options)

    async def commit(self, session_id: str, *, options: CallOptions | None = None) -> None:
        """Take away what came later. Without a staged revert this does nothing."""
        await self._wire.command(_path(session_id, "commit"), options=options)


def _path(session_id: str, verb: str) -> str:
    return f"/api/session/{segment(session_id)}/revert/{verb}"
