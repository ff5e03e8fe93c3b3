"""The user's own Google login, as the tools of Google Cloud leave it in a file.

Pure: the content of the file goes in, the request for an access token comes out. Logins of a
person and service accounts are read; other kinds are refused. Reading the file and keeping tokens
is location.models.google_login, signing host.credentials.rs256.

Invariant: what proves who one is goes to Google, or to this machine, and into no text for a person.
"""

import base64
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from perdure.core import limits
from perdure.core.credentials import keys, oauth
from perdure.net.transport import HttpRequest
from perdure.schema import codec
from perdure.schema.value import Confidential, Value

FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
"""The variable that names another file than the usual one."""
REMEDY: Final = "run `gcloud auth application-default login`"

_TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_SECONDS: Final = 3600
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


Sign = Callable[[str, bytes], bytes]
"""Signs with the private key of a PEM text (RS256); raises UnusableKeyError."""


class UnusableKeyError(Exception):
    """A private key that nothing can be signed with; the message never quotes it."""


class GoogleToken(Value):
    """An access token of the user's login, which is asked for when a request is made."""


class AuthorizedUser(Confidential, kw_only=True):
    client_id: str
    client_secret: str
    refresh_token: str
    token_url: str = _TOKEN_URL


class ServiceAccount(Confidential, kw_only=True):
    email: str
    key_id: str
    private_key: str
    token_url: str = _TOKEN_URL


class NoGoogleLogin(Value):
    reason: str


GoogleUser = AuthorizedUser | ServiceAccount
GoogleLoginLookup = GoogleUser | NoGoogleLogin


class _File(Confidential, kw_only=True):
    type: str = ""
    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""
    client_email: str = ""
    private_key_id: str = ""
    private_key: str = ""
    token_uri: str = ""


def read(data: bytes, *, path: str) -> GoogleLoginLookup:
    """The login that a file holds, or why it cannot be used; `path` is for the person."""
    try:
        file = codec.decode(_File, data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return NoGoogleLogin(f"{path} does not hold a Google login; {REMEDY}")
    if file.token_uri and not _is_known(file.token_uri):
        # Whoever can write one line into that file would get the refresh token.
        return NoGoogleLogin(f"{path} asks for tokens at another place than {_TOKEN_URL}")
    match file.type:
        case "authorized_user":
            user = _authorized_user(file)
        case "service_account":
            user = _service_account(file)
        case _:
            return NoGoogleLogin(
                f"{path} holds a kind of Google login that is not supported here; {REMEDY}"
            )
    return user or NoGoogleLogin(f"the Google login in {path} is not complete; {REMEDY}")


def user_token_request(user: AuthorizedUser) -> HttpRequest:
    """The request for an access token."""
    return oauth.token_request(
        user.token_url,
        grant_type="refresh_token",
        client_id=user.client_id,
        client_secret=user.client_secret,
        refresh_token=user.refresh_token,
    )


def service_token_request(account: ServiceAccount, *, sign: Sign, now: int) -> HttpRequest:
    """The same for a service account, made at `now`; raises UnusableKeyError."""
    issued = now // 1000
    head = {"alg": "RS256", "typ": "JWT", "kid": account.key_id}
    claims = {
        "iss": account.email,
        "scope": _SCOPE,
        "aud": account.token_url,
        "iat": issued,
        "exp": issued + _ASSERTION_SECONDS,
    }
    said = b".".join(_base64(codec.encode(part)) for part in (head, claims))
    signed = b".".join((said, _base64(sign(account.private_key, said))))
    return oauth.token_request(account.token_url, grant_type=_GRANT, assertion=signed.decode())


def _authorized_user(file: _File) -> AuthorizedUser | None:
    secrets = (file.client_id, file.client_secret, file.refresh_token)
    if any(keys.key_fault(each) is not None for each in secrets):
        return None
    return AuthorizedUser(
        client_id=file.client_id,
        client_secret=file.client_secret,
        refresh_token=file.refresh_token,
        token_url=file.token_uri or _TOKEN_URL,
    )


def _service_account(file: _File) -> ServiceAccount | None:
    if not (file.client_email and file.private_key_id and file.private_key):
        return None
    return ServiceAccount(
        email=file.client_email,
        key_id=file.private_key_id,
        private_key=file.private_key,
        token_url=file.token_uri or _TOKEN_URL,
    )


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _is_known(url: str) -> bool:
    if url == _TOKEN_URL:
        return True
    if len(url) > limits.LOGIN_INPUT_CHARS_MAX or keys.origin_of(url) is None:
        return False
    return urlsplit(url).hostname in _LOOPBACK
