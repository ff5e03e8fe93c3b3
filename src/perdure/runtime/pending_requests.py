"""Who waits for a person beyond this process: answers that come from elsewhere, and orphans.

A word that was said to another process is delivered to the desk where it is waited for. What a dead
process waited for is rejected, for all to see: its call is settled as interrupted (runtime.tenure)
and never run again, so there is nobody left whom an answer could help.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from perdure.runtime.live_hub import LiveHub
from perdure.schema.errors import (
    InvalidRequestError,
    PermissionNotFoundError,
    QuestionNotFoundError,
)
from perdure.schema.ids import PermissionID, QuestionID
from perdure.schema.live_event import PermissionReplied, QuestionRejected
from perdure.schema.pending import AnswersGiven, AnswersRefused, PendingRequest, PermissionWord
from perdure.schema.permission import PermissionRequest
from perdure.store.pending_table import PendingRequests, PendingRow

if TYPE_CHECKING:
    from perdure.location.location_map import LocationMap
    from perdure.location.services import LocationServices


async def reject_orphans(requests: PendingRequests, hub: LiveHub) -> None:
    for row in await requests.take_orphans():
        hub.publish(_rejected(row.request), row.location)


async def deliver(requests: PendingRequests, locations: "LocationMap") -> None:
    """Give every word that was left for us to the desk where it is waited for."""
    for row in await requests.answered():
        location = locations.if_open(row.location)
        # Settled by somebody here in the meantime, it needs no other word.
        with suppress(PermissionNotFoundError, QuestionNotFoundError, InvalidRequestError):
            if location is not None:
                await _tell(location, row)
        await requests.remove([row.request.id])


async def _tell(location: "LocationServices", row: PendingRow) -> None:
    word, request_id = row.word, row.request.id
    match word:
        case None:
            return
        case PermissionWord(reply=reply, message=message):
            said = message or None
            await location.permissions.reply(PermissionID(request_id), reply, message=said)
        case AnswersGiven(answers=answers):
            location.questions.reply(QuestionID(request_id), answers)
        case AnswersRefused():
            location.questions.reject(QuestionID(request_id))
        case _:
            assert_never(word)


def _rejected(request: PendingRequest) -> PermissionReplied | QuestionRejected:
    if isinstance(request, PermissionRequest):
        return PermissionReplied(
            session_id=request.session_id, request_id=request.id, reply="reject"
        )
    return QuestionRejected(session_id=request.session_id, request_id=request.id)
