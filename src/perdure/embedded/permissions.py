"""Answering permission requests from inside the process that asks.

Requests are announced on the live stream like everything else; only the answer goes this way.
"""

from perdure.runtime.locations import Locations
from perdure.schema.ids import PermissionID
from perdure.schema.location import LocationRef
from perdure.schema.permission import Reply


class PermissionDesks(Locations):
    """The Locations of a runtime, with the desk of each."""

    def __init__(self, locations: Locations) -> None:
        # The same Locations seen from another side, not a second set of them.
        vars(self).update(vars(locations))

    async def reply(
        self, request_id: str, reply: Reply, *, directory: str, message: str | None = None
    ) -> None:
        """Settle a pending request of the Location at `directory`.

        Raises PermissionNotFoundError for one that is settled or was never there.
        """
        location = await self._locations.get(LocationRef(directory=directory))
        await location.permissions.reply(PermissionID(request_id), reply, message=message)
