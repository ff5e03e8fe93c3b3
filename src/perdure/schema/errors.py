"""Errors that are part of the contract: callers can handle them, and they have a wire form.

The wire form is flat: `_tag` names the kind, `message` is for a person, the rest is for programs.
`protocol.errors` maps kinds to HTTP statuses.
"""

from typing import Literal

from perdure.schema.codec import JsonObject
from perdure.schema.ids import JobID, MessageID, PermissionID, PtyID, QuestionID, SessionID


class PerdureError(Exception):
    """Base of every failure that a call of a client or a host raises."""


class DeclaredError(PerdureError):
    """Base of the failures that the contract declares."""

    tag: str
    """The kind, as the wire names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def value(self) -> JsonObject:
        """The tagged wire form."""
        return {"_tag": self.tag, "message": self.message}


class DomainError(DeclaredError):
    """Base of the declared failures that this version has a class for."""

    def fields(self) -> JsonObject:
        """The fields of the wire form besides `_tag` and `message`."""
        return {}

    def wire(self) -> JsonObject:
        return {"_tag": self.tag, **self.fields(), "message": self.message}

    @property
    def value(self) -> JsonObject:
        return self.wire()


class InvalidRequestError(DomainError):
    tag = "InvalidRequestError"

    def __init__(self, message: str, *, kind: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.field = field

    def fields(self) -> JsonObject:
        given = {"kind": self.kind, "field": self.field}
        return {name: value for name, value in given.items() if value is not None}


class InvalidCursorError(DomainError):
    tag = "InvalidCursorError"

    def __init__(self, message: str = "Invalid cursor") -> None:
        super().__init__(message)


class UnauthorizedError(DomainError):
    tag = "UnauthorizedError"

    def __init__(self) -> None:
        super().__init__("Authentication required")


class ForbiddenError(DomainError):
    tag = "ForbiddenError"


class NotFoundError(DomainError):
    """The path is not a route of this server."""

    tag = "NotFoundError"


class MethodNotAllowedError(DomainError):
    tag = "MethodNotAllowedError"

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"Method {method} is not allowed here")
        self.allowed = allowed


class PayloadTooLargeError(DomainError):
    tag = "PayloadTooLargeError"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"Request body is larger than {bytes_max} bytes")
        self.bytes_max = bytes_max

    def fields(self) -> JsonObject:
        return {"limit": self.bytes_max}


class UnsupportedMediaTypeError(DomainError):
    tag = "UnsupportedMediaTypeError"


class SessionNotFoundError(DomainError):
    tag = "SessionNotFoundError"

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"Session not found: {session_id}")
        self.session_id = session_id

    def fields(self) -> JsonObject:
        return {"sessionID": self.session_id}


class MessageNotFoundError(DomainError):
    """The message does not exist, or belongs to another Session."""

    tag = "MessageNotFoundError"

    def __init__(self, session_id: SessionID, message_id: MessageID) -> None:
        super().__init__(f"Message not found: {message_id}")
        self.session_id = session_id
        self.message_id = message_id

    def fields(self) -> JsonObject:
        return {"sessionID": self.session_id, "messageID": self.message_id}


class ProviderNotFoundError(DomainError):
    tag = "ProviderNotFoundError"

    def __init__(self, provider_id: str) -> None:
        super().__init__(f"Provider not found: {provider_id}")
        self.provider_id = provider_id

    def fields(self) -> JsonObject:
        return {"providerID": self.provider_id}


class IntegrationNotFoundError(DomainError):
    tag = "IntegrationNotFoundError"

    def __init__(self, integration_id: str) -> None:
        super().__init__(f"Integration not found: {integration_id}")
        self.integration_id = integration_id

    def fields(self) -> JsonObject:
        return {"integrationID": self.integration_id}


class AttemptNotFoundError(DomainError):
    """The login attempt never existed, was cancelled, or ended too long ago."""

    tag = "AttemptNotFoundError"

    def __init__(self, attempt_id: str) -> None:
        super().__init__(f"Login attempt not found: {attempt_id}")
        self.attempt_id = attempt_id

    def fields(self) -> JsonObject:
        return {"attemptID": self.attempt_id}


class CredentialNotFoundError(DomainError):
    tag = "CredentialNotFoundError"

    def __init__(self, credential_id: str) -> None:
        super().__init__(f"Credential not found: {credential_id}")
        self.credential_id = credential_id

    def fields(self) -> JsonObject:
        return {"credentialID": self.credential_id}


class PermissionNotFoundError(DomainError):
    """The request does not exist, is settled, or belongs to another Session."""

    tag = "PermissionNotFoundError"

    def __init__(self, request_id: PermissionID) -> None:
        super().__init__(f"Permission request not found: {request_id}")
        self.request_id = request_id

    def fields(self) -> JsonObject:
        return {"requestID": self.request_id}


class PermissionConflictError(DomainError):
    """A request with this id is pending."""

    tag = "ConflictError"

    def __init__(self, request_id: PermissionID) -> None:
        super().__init__(f"Permission request already exists: {request_id}")
        self.request_id = request_id

    def fields(self) -> JsonObject:
        return {"resource": self.request_id}


class QuestionNotFoundError(DomainError):
    """The request does not exist, is settled, or belongs to another Session."""

    tag = "QuestionNotFoundError"

    def __init__(self, request_id: QuestionID) -> None:
        super().__init__(f"Question request not found: {request_id}")
        self.request_id = request_id

    def fields(self) -> JsonObject:
        return {"requestID": self.request_id}


class McpServerNotFoundError(DomainError):
    tag = "McpServerNotFoundError"

    def __init__(self, name: str) -> None:
        super().__init__(f"MCP server not found: {name}")
        self.name = name

    def fields(self) -> JsonObject:
        return {"name": self.name}


class JobNotFoundError(DomainError):
    """The job does not exist, or belongs neither to the Session nor to its children."""

    tag = "JobNotFoundError"

    def __init__(self, job_id: JobID) -> None:
        super().__init__(f"Background job not found: {job_id}")
        self.job_id = job_id

    def fields(self) -> JsonObject:
        return {"jobID": self.job_id}


class PtyNotFoundError(DomainError):
    """The terminal does not exist, was removed, or belongs to another Location."""

    tag = "PtyNotFoundError"

    def __init__(self, pty_id: PtyID) -> None:
        super().__init__(f"PTY session not found: {pty_id}")
        self.pty_id = pty_id

    def fields(self) -> JsonObject:
        return {"ptyID": self.pty_id}


class PromptConflictError(DomainError):
    tag = "ConflictError"

    def __init__(self, message_id: MessageID) -> None:
        super().__init__(
            f"Prompt message ID conflicts with an existing durable record: {message_id}"
        )
        self.message_id = message_id

    def fields(self) -> JsonObject:
        return {"resource": self.message_id}


class InboxFullError(DomainError):
    """The maximum number of prompts is pending. A retry of an admitted one still succeeds."""

    tag = "InboxFullError"

    def __init__(self, session_id: SessionID, pending_max: int) -> None:
        super().__init__(
            f"Session {session_id} has {pending_max} prompts waiting and takes no more"
            " until some are promoted or cancelled"
        )
        self.session_id = session_id
        self.pending_max = pending_max

    def fields(self) -> JsonObject:
        return {"sessionID": self.session_id, "limit": self.pending_max}


class PromptSettledError(DomainError):
    """The prompt is no longer pending: it was promoted or cancelled."""

    tag = "ConflictError"

    def __init__(self, message_id: MessageID, state: Literal["promoted", "cancelled"]) -> None:
        super().__init__(f"Prompt is no longer pending, it is {state}: {message_id}")
        self.message_id = message_id
        self.state = state

    def fields(self) -> JsonObject:
        return {"resource": self.message_id, "state": self.state}


class NothingToDecideError(DomainError):
    """The Session does not wait for a recovery decision."""

    tag = "ConflictError"

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"Session does not wait for a recovery decision: {session_id}")
        self.session_id = session_id

    def fields(self) -> JsonObject:
        return {"resource": self.session_id, "decision": "none"}


class SessionBusyError(DomainError):
    """The operation needs an idle Session, and this one is running."""

    tag = "ConflictError"

    def __init__(self, session_id: SessionID) -> None:
        super().__init__(f"Session is running: {session_id}")
        self.session_id = session_id

    def fields(self) -> JsonObject:
        return {"resource": self.session_id}


class MoveConflictError(DomainError):
    """The state of the Session or of its files conflicts with the move."""

    tag = "ConflictError"

    def __init__(self, directory: str, message: str) -> None:
        super().__init__(message)
        self.directory = directory

    def fields(self) -> JsonObject:
        return {"resource": self.directory}


class RevertConflictError(DomainError):
    """A file cannot be restored. Nothing was changed."""

    tag = "ConflictError"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be restored, so nothing was changed: {reason}")
        self.path = path
        self.reason = reason

    def fields(self) -> JsonObject:
        return {"resource": self.path, "reason": self.reason}


class ServiceUnavailableError(DomainError):
    tag = "ServiceUnavailableError"

    def __init__(self, message: str, *, service: str | None = None) -> None:
        super().__init__(message)
        self.service = service

    def fields(self) -> JsonObject:
        return {} if self.service is None else {"service": self.service}


class DamagedRowError(DomainError):
    """A stored row of this Session cannot be read. Other Sessions are not affected."""

    tag = "DamagedRowError"

    def __init__(self, session_id: SessionID, *, table: str, seq: int | None, reason: str) -> None:
        at = "" if seq is None else f" at sequence {seq}"
        super().__init__(
            f"Session {session_id} has a damaged row in {table}{at}: {reason}."
            " Run `perdure doctor` for details; `perdure doctor --repair` restores it from the log."
        )
        self.session_id = session_id
        self.table = table
        self.seq = seq
        self.reason = reason

    def fields(self) -> JsonObject:
        place = {} if self.seq is None else {"seq": self.seq}
        return {"sessionID": self.session_id, "table": self.table, **place, "reason": self.reason}


class StorageError(DomainError):
    """The disk or the database cannot be used. The message says why and what to do."""

    tag = "StorageError"


class UnknownError(DomainError):
    """A defect of the server, with a reference to find it in the log."""

    tag = "UnknownError"

    def __init__(self, ref: str) -> None:
        super().__init__("Unexpected server error. Check server logs for details.")
        self.ref = ref

    def fields(self) -> JsonObject:
        return {"ref": self.ref}
