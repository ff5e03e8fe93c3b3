"""Maps errors to HTTP statuses and back: the server writes them, the client reads them.

Errors of the domain are in `schema.errors`; the few that only concern HTTP are here. `read` returns
the same kind that was written; an unknown `_tag` gives None, so that a client can report an
unexpected status.
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
    """Too many concurrent requests. The same request may succeed a moment later."""

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
    errors.McpServerNotFoundError: 404,
    errors.MethodNotAllowedError: 405,
    RequestTimeoutError: 408,
    errors.PromptConflictError: 409,
    errors.RevertConflictError: 409,
    errors.PromptSettledError: 409,
    errors.PermissionConflictError: 409,
    errors.SessionBusyError: 409,
    errors.NothingToDecideError: 409,
    errors.MoveConflictError: 409,
    # The request is valid, but the stored data must be repaired first.
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
    """The status of the error's class, or of its nearest base class."""
    kinds = (cast("type[DomainError]", kind) for kind in type(error).__mro__)
    return next(STATUS_BY_ERROR[kind] for kind in kinds if kind in STATUS_BY_ERROR)


def is_momentary(error: DomainError) -> bool:
    """Whether the same request may succeed a moment later, so that `Retry-After` is sent."""
    return isinstance(error, TooManyRequestsError | errors.ServiceUnavailableError)


def read(body: JsonValue) -> DomainError | None:
    """The error in the decoded JSON `body` of a response; None if unknown."""
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
    # Seven kinds share this tag; their fields tell them apart.
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
    "McpServerNotFoundError": lambda body: errors.McpServerNotFoundError(body["name"]),
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
