"""Sessions without children, behind the routes."""

from perdure.schema.ids import SessionID


class StagedChildren:
    async def list_children(self, session_id: SessionID) -> tuple[bytes, ...]:
        return ()
