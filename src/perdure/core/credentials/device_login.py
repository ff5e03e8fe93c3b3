"""Logins by device code (RFC 8628): a person enters a short code in any browser.

For machines without one, such as those behind SSH. Asking and waiting is
runtime.locations.device_login; the tokens are those of core.credentials.oauth.

Invariant: the device code appears in no message. The user code is for the person and does.
"""

from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.core.credentials import keys, oauth
from perdure.core.credentials.oauth import LoginMethod, Tokens, TokensRefused
from perdure.net.transport import HttpRequest
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential, Value

_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_INTERVAL_SECONDS: Final = 5
_INTERVAL_SECONDS_MAX: Final = 60
_USER_CODE_CHARS_MAX: Final = 64
_WAITING: Final = frozenset({"authorization_pending", "slow_down"})


class DeviceCode(Confidential, kw_only=True):
    device_code: str
    user_code: str
    url: str
    """The page on which the person enters or confirms the user code."""
    seconds: int
    """The time for which the codes are valid."""
    interval: int
    """Seconds between two questions whether the person has finished."""


class NotYet(Value):
    """The person has yet to finish."""

    interval: int
    """Seconds until the next question."""


def code_request(method: LoginMethod, inputs: Mapping[str, str]) -> HttpRequest:
    """The request for a device code."""
    scopes = {"scope": " ".join(method.scopes)} if method.scopes else {}
    fields = {**oauth.asked_parameters(method, inputs), **scopes, "client_id": method.client_id}
    return oauth.token_request(method.device_url, **fields)


def read_code(*, status: int, body: bytes) -> DeviceCode | TokensRefused:
    """Parse the answer to `code_request`."""
    answer = oauth.read_object(body)
    device, user = answer.get("device_code"), answer.get("user_code")
    url: JsonValue = answer.get("verification_uri_complete") or _verification_url(answer)
    if status != 200 or not (_is_text(device) and _is_text(user) and isinstance(url, str)):
        return TokensRefused(f"the provider gave no device code (status {status})", final=False)
    if keys.origin_of(url) is None or not url.isprintable():
        return TokensRefused("the provider named no address for the code", final=False)
    return DeviceCode(
        device_code=str(device),
        user_code=str(user)[:_USER_CODE_CHARS_MAX],
        url=url,
        seconds=_seconds(answer.get("expires_in"), limits.ATTEMPT_SECONDS_MAX),
        interval=_seconds(answer.get("interval"), _INTERVAL_SECONDS),
    )


def poll_request(method: LoginMethod, code: DeviceCode) -> HttpRequest:
    """The question whether the person has finished."""
    return oauth.token_request(
        method.token_url,
        grant_type=_GRANT,
        client_id=method.client_id,
        device_code=code.device_code,
    )


def read_poll(
    *, status: int, body: bytes, now: int, interval: int
) -> Tokens | NotYet | TokensRefused:
    """Parse the answer to `poll_request`, which was sent after `interval` seconds."""
    error = oauth.read_object(body).get("error")
    if error in _WAITING:
        # The standard says by how much to slow down.
        slower = interval + _INTERVAL_SECONDS if error == "slow_down" else interval
        return NotYet(min(slower, _INTERVAL_SECONDS_MAX))
    return oauth.read_tokens(status=status, body=body, now=now)


def _verification_url(answer: JsonObject) -> JsonValue:
    # Google calls it so.
    return answer.get("verification_uri") or answer.get("verification_url")


def _is_text(value: JsonValue) -> bool:
    fits = isinstance(value, str) and 0 < len(value) <= limits.CREDENTIAL_CHARS_MAX
    return fits and str(value).isprintable()


def _seconds(value: JsonValue, usual: int) -> int:
    return int(value) if isinstance(value, int | float) and 1 <= value <= 24 * 3600 else usual
