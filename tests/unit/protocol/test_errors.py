"""Failures survive the wire: what the server writes, the client reads."""

import pytest

from perdure.protocol import errors
from perdure.protocol.api import API
from perdure.schema import codec
from perdure.schema import errors as kinds
from perdure.schema.errors import DomainError
from perdure.schema.ids import JobID, MessageID, PermissionID, PtyID, QuestionID, SessionID
from tests.requirements import requirement

ONE = SessionID("ses_1")
EXAMPLES: tuple[DomainError, ...] = (
    kinds.InvalidRequestError("no", kind="Payload", field="x"),
    kinds.InvalidCursorError(),
    kinds.UnauthorizedError(),
    kinds.ForbiddenError("no"),
    kinds.NotFoundError("no"),
    kinds.SessionNotFoundError(ONE),
    kinds.MessageNotFoundError(ONE, MessageID("msg_1")),
    kinds.ProviderNotFoundError("p"),
    kinds.IntegrationNotFoundError("p"),
    kinds.AttemptNotFoundError("att_1"),
    kinds.CredentialNotFoundError("cred_1"),
    kinds.PermissionNotFoundError(PermissionID("per_1")),
    kinds.QuestionNotFoundError(QuestionID("que_1")),
    kinds.PtyNotFoundError(PtyID("pty_1")),
    kinds.JobNotFoundError(JobID("job_1")),
    kinds.McpServerNotFoundError("git"),
    kinds.MethodNotAllowedError("PUT", ("GET",)),
    errors.RequestTimeoutError(),
    kinds.PromptConflictError(MessageID("msg_1")),
    kinds.PromptSettledError(MessageID("msg_1"), "promoted"),
    kinds.PermissionConflictError(PermissionID("per_1")),
    kinds.SessionBusyError(ONE),
    kinds.NothingToDecideError(ONE),
    kinds.MoveConflictError("/work/there", "no"),
    kinds.RevertConflictError("/work/a.txt", "no"),
    kinds.DamagedRowError(ONE, table="event", seq=3, reason="no JSON"),
    kinds.PayloadTooLargeError(5),
    kinds.UnsupportedMediaTypeError("no"),
    errors.TooManyRequestsError("no"),
    kinds.InboxFullError(ONE, 5),
    errors.RequestHeadTooLargeError(5),
    kinds.StorageError("full"),
    kinds.UnknownError("err_1"),
    kinds.ServiceUnavailableError("no", service="s"),
)


def test_every_kind_that_has_a_status_has_an_example_here() -> None:
    assert {type(error) for error in EXAMPLES} == set(errors.STATUS_BY_ERROR)


@requirement("S117")
@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.tag)
def test_a_failure_reads_back_as_what_it_was(error: DomainError) -> None:
    read = errors.read(codec.decode_any(codec.encode(error.wire())))
    assert type(read) is type(error)
    assert read is not None
    assert read.wire() == error.wire()


@pytest.mark.parametrize("body", [None, [], "x", {}, {"_tag": "Nope"}, {"_tag": "ConflictError"}])
def test_a_body_that_is_no_failure_of_ours_stays_unread(body: object) -> None:
    assert errors.read(body) is None


def test_every_declared_error_has_a_status() -> None:
    for endpoint in API:
        assert set(endpoint.failures) <= set(errors.STATUS_BY_ERROR), endpoint.operation_id
