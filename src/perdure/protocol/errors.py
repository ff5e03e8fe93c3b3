"""Failure kind <-> HTTP status, both ways: the server writes with it, the client reads with it.

The kinds of the domain stand in `schema.errors`; the few that exist only because there is a wire
stand here. `read` gives back the same kind that was written; a `_tag` nobody knows stays unread,
so that a client can say "unexpected status" rather than guess.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from perdure.schema import errors
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.errors import DomainError
from perdure.schema.ids import JobID, MessageID, PermissionID, PtyID, QuestionID, SessionID


class RequestHeadTooLargeError(DomainError):
    tag = "RequestHeadTooLargeError"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"Request line and headers are larger than {bytes_max} bytes")
        self.bytes_max = bytes_max

    def fields(self) -> JsonObject:
        return {"limit": self.bytes_max}


class RequestTimeoutError(DomainError):
    tag = "RequestTimeoutError"

    def __init__(self) -> None:
        super().__init__("The request took too long to arrive")


class TooManyRequestsError(DomainError):
    """One too many at a time. The same request is welcome a moment later."""

    tag = "TooManyRequestsError"


STATUS_BY_ERROR: Final[Mapping[type[DomainError], int]] = {
    errors.InvalidRequestError: 400,
    errors.InvalidCursorError: 400,
    errors.UnauthorizedError: 401,
    errors.ForbiddenError: 403,
    errors.NotFoundError: 404,
    errors.SessionNotFoundError: 404,
    errors.MessageNotFoundError: 404,
    errors.ProviderNotFoundError: 404,
    errors.IntegrationNotFoundError: 404,
    errors.AttemptNotFoundError: 404,
    errors.CredentialNotFoundError: 404,
    errors.PermissionNotFoundError: 404,
    errors.QuestionNotFoundError: 404,
    errors.PtyNotFoundError: 404,
    errors.JobNotFoundError: 404,
    errors.MethodNotAllowedError: 405,
    RequestTimeoutError: 408,
    errors.PromptConflictError: 409,
    errors.RevertConflictError: 409,
    errors.PromptSettledError: 409,
    errors.PermissionConflictError: 409,
    errors.SessionBusyError: 409,
    errors.NothingToDecideError: 409,
    errors.MoveConflictError: 409,
    # The request is sound and would be again; what it is about has to be repaired first.
    errors.DamagedRowError: 409,
    errors.PayloadTooLargeError: 413,
    errors.UnsupportedMediaTypeError: 415,
    TooManyRequestsError: 429,
    errors.InboxFullError: 429,
    RequestHeadTooLargeError: 431,
    errors.UnknownError: 500,
    errors.ServiceUnavailableError: 503,
    errors.StorageError: 507,
}


def status_of(error: DomainError) -> int:
    """That of its kind, or of the nearest kind that it is one of."""
    kinds = (cast("type[DomainError]", kind) for kind in type(error).__mro__)
    return next(STATUS_BY_ERROR[kind] for kind in kinds if kind in STATUS_BY_ERROR)


def read(body: JsonValue) -> DomainError | None:
    """The failure that `body`, the decoded JSON of an error answer, describes."""
    if not isinstance(body, dict):
        return None
    fields = cast("JsonObject", body)
    rebuild = _REBUILD.get(str(fields.get("_tag")))
    try:
        return None if rebuild is None else rebuild(fields)
    except (KeyError, TypeError):
        return None


def _method_not_allowed(body: JsonObject) -> DomainError:
    error = errors.MethodNotAllowedError(method="", allowed=())
    error.message = str(body["message"])
    return error


def _conflict(body: JsonObject) -> DomainError:
    # One tag for seven kinds: what is in conflict tells them apart.
    resource = str(body["resource"])
    if "state" in body:
        return errors.PromptSettledError(MessageID(resource), body["state"])
    if resource.startswith("per_"):
        return errors.PermissionConflictError(PermissionID(resource))
    if "decision" in body:
        return errors.NothingToDecideError(SessionID(resource))
    if resource.startswith("ses_"):
        return errors.SessionBusyError(SessionID(resource))
    if "reason" in body:
        return errors.RevertConflictError(resource, body["reason"])
    if resource.startswith("/"):
        return errors.MoveConflictError(resource, body["message"])
    return errors.PromptConflictError(MessageID(resource))


_REBUILD: Final[Mapping[str, Callable[[JsonObject], DomainError]]] = {
    "InvalidRequestError": lambda body: errors.InvalidRequestError(
        body["message"], kind=body.get("kind"), field=body.get("field")
    ),
    "InvalidCursorError": lambda body: errors.InvalidCursorError(body["message"]),
    "UnauthorizedError": lambda _: errors.UnauthorizedError(),
    "ForbiddenError": lambda body: errors.ForbiddenError(body["message"]),
    "NotFoundError": lambda body: errors.NotFoundError(body["message"]),
    "SessionNotFoundError": lambda body: errors.SessionNotFoundError(SessionID(body["sessionID"])),
    "MessageNotFoundError": lambda body: errors.MessageNotFoundError(
        SessionID(body["sessionID"]), MessageID(body["messageID"])
    ),
    "ProviderNotFoundError": lambda body: errors.ProviderNotFoundError(body["providerID"]),
    "IntegrationNotFoundError": lambda body: errors.IntegrationNotFoundError(body["integrationID"]),
    "AttemptNotFoundError": lambda body: errors.AttemptNotFoundError(body["attemptID"]),
    "CredentialNotFoundError": lambda body: errors.CredentialNotFoundError(body["credentialID"]),
    "PermissionNotFoundError": lambda body: errors.PermissionNotFoundError(
        PermissionID(body["requestID"])
    ),
    "QuestionNotFoundError": lambda body: errors.QuestionNotFoundError(
        QuestionID(body["requestID"])
    ),
    "JobNotFoundError": lambda body: errors.JobNotFoundError(JobID(body["jobID"])),
    "PtyNotFoundError": lambda body: errors.PtyNotFoundError(PtyID(body["ptyID"])),
    "MethodNotAllowedError": _method_not_allowed,
    "RequestTimeoutError": lambda _: RequestTimeoutError(),
    "ConflictError": _conflict,
    "PayloadTooLargeError": lambda body: errors.PayloadTooLargeError(body["limit"]),
    "UnsupportedMediaTypeError": lambda body: errors.UnsupportedMediaTypeError(body["message"]),
    "TooManyRequestsError": lambda body: TooManyRequestsError(body["message"]),
    "InboxFullError": lambda body: errors.InboxFullError(
        SessionID(body["sessionID"]), body["limit"]
    ),
    "RequestHeadTooLargeError": lambda body: RequestHeadTooLargeError(body["limit"]),
    "DamagedRowError": lambda body: errors.DamagedRowError(
        SessionID(body["sessionID"]),
        table=body["table"],
        seq=body.get("seq"),
        reason=body["reason"],
    ),
    "StorageError": lambda body: errors.StorageError(body["message"]),
    "UnknownError": lambda body: errors.UnknownError(body["ref"]),
    "ServiceUnavailableError": lambda body: errors.ServiceUnavailableError(
        body["message"], service=body.get("service")
    ),
}
