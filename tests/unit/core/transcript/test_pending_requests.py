"""What waits for the user is listed once, and goes when any client has answered it."""

from perdure.core.transcript.change import RequestClosed, RequestOpened
from perdure.core.transcript.pending_requests import PendingRequests
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.ids import PermissionID, QuestionID
from perdure.schema.live_event import PermissionReplied, QuestionRejected, ServerConnected
from tests.fixtures import SESSION

ASKED = PermissionRequest(PermissionID("per_1"), SESSION, "bash", ("ls",))
QUESTION = QuestionRequest(QuestionID("que_1"), SESSION, ())


def test_a_request_is_opened_once_and_closed_once() -> None:
    requests = PendingRequests()
    assert requests.apply(ASKED) == (RequestOpened(ASKED),)
    assert requests.apply(ASKED) == ()
    assert requests.apply(QUESTION) == (RequestOpened(QUESTION),)
    assert requests.open == (ASKED, QUESTION)
    replied = PermissionReplied(SESSION, ASKED.id, "once")
    assert requests.apply(replied) == (RequestClosed(ASKED.id),)
    assert requests.apply(replied) == ()
    assert requests.apply(QuestionRejected(SESSION, QUESTION.id)) == (RequestClosed(QUESTION.id),)
    assert requests.apply(ServerConnected()) == ()
    assert requests.open == ()


def test_a_list_of_the_server_replaces_what_was_known() -> None:
    requests = PendingRequests()
    requests.apply(ASKED)
    assert requests.replace([QUESTION]) == (RequestClosed(ASKED.id), RequestOpened(QUESTION))
    assert requests.replace([QUESTION]) == ()
    assert requests.open == (QUESTION,)
