"""A login attempt: one login that a person has begun, in this process, for some minutes."""

from perdure.core.credentials.oauth import LoginMethod
from perdure.host.http.oauth_callback import OAuthCallback
from perdure.location.models.integrations import AUTHORIZATION
from perdure.schema.errors import InvalidRequestError
from perdure.schema.models.integration import (
    AttemptComplete,
    AttemptExpired,
    AttemptFailed,
    AttemptPending,
    AttemptStatus,
    AttemptTime,
)
from perdure.schema.value import State


class LoginAttempt(State, kw_only=True):
    id: str
    integration_id: str
    method: LoginMethod
    label: str
    origins: tuple[str, ...]
    verifier: str
    state: str
    time: AttemptTime
    status: AttemptStatus
    redirect: str = ""
    callback: OAuthCallback | None = None
    exchanging: bool = False
    ended_at: int | None = None

    def __repr__(self) -> str:
        return f"LoginAttempt({self.id}, ...)"

    @property
    def is_open(self) -> bool:
        return isinstance(self.status, AttemptPending)


def require_open(attempt: LoginAttempt) -> None:
    """Raise InvalidRequestError if the attempt cannot be completed any more."""
    match attempt.status:
        case AttemptPending() if not attempt.exchanging:
            return
        case AttemptPending() | AttemptComplete():
            raise refused("This login has been completed already")
        case AttemptFailed(message=message):
            raise refused(f"This login is over. {message}")
        case AttemptExpired():
            raise refused("This login took too long. Begin a new one")


def close_callback(attempt: LoginAttempt) -> None:
    if attempt.callback is not None:
        attempt.callback.close()


def refused(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, kind=AUTHORIZATION)
