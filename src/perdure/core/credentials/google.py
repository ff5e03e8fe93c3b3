"""Google logins from the file that the Google Cloud tools write.

Parses the file and builds the request for an access token. Logins of a person and service accounts
are handled here; federation and impersonation need the package `google-auth`
(host.credentials.google_auth). Reading the file and keeping tokens is location.models.google_login,
signing is host.credentials.rs256.

Invariant: credentials go only to Google or to this machine, and appear in no message.
"""

import base64
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from perdure.core import limits
from perdure.core.credentials import keys, oauth
from perdure.lazy_pattern import lazy_pattern
from perdure.net import loopback
from perdure.net.transport import HttpRequest
from perdure.schema import codec
from perdure.schema.value import Confidential, Value

FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
"""The variable that names another file than the default."""
REMEDY: Final = "run `gcloud auth application-default login`"

_TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_SECONDS: Final = 3600
METADATA_HOST: Final = "metadata.google.internal"
_METADATA_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"
_ORIGIN: Final = lazy_pattern(r"https://(?:[a-z0-9-]{1,63}\.){1,4}googleapis\.com")


Sign = Callable[[str, bytes], bytes]
"""Signs with the private key of a PEM text (RS256); raises UnusableKeyError."""


class UnusableKeyError(Exception):
    """A private key cannot be used for signing. The message never quotes it."""


class GoogleToken(Value):
    """Stands for an access token of the user's login, fetched when a request is sent."""


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


class OtherLogin(Confidential):
    """A login that only the package `google-auth` knows how to use."""

    content: bytes
    """The checked content of the file."""


class MachineAccount(Value):
    """The account of a machine or container of Google Cloud, whose tokens its host gives."""

    host: str


class NoGoogleLogin(Value):
    reason: str


GoogleUser = AuthorizedUser | ServiceAccount | OtherLogin | MachineAccount
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
    token_url: str = ""
    token_info_url: str = ""
    revoke_url: str = ""
    service_account_impersonation_url: str = ""
    source_credentials: "_File | None" = None

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses to which tokens and secrets of this login are sent."""
        own = (
            self.token_uri,
            self.token_url,
            self.token_info_url,
            self.revoke_url,
            self.service_account_impersonation_url,
        )
        return own if self.source_credentials is None else (*own, *self.source_credentials.urls)


def read(data: bytes, *, path: str) -> GoogleLoginLookup:
    """Parse a login file, or say why it cannot be used; `path` appears in the message."""
    try:
        file = codec.decode(_File, data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return NoGoogleLogin(f"{path} does not hold a Google login; {REMEDY}")
    if not all(_is_known(url) for url in file.urls if url):
        # Otherwise a program that can write one line into the file would get the refresh token.
        return NoGoogleLogin(f"{path} names another token server than {_TOKEN_URL}")
    match file.type:
        case "authorized_user":
            user = _authorized_user(file)
        case "service_account":
            user = _service_account(file)
        case "external_account" | "external_account_authorized_user":
            user = OtherLogin(data) if file.token_url else None
        case "impersonated_service_account":
            complete = file.service_account_impersonation_url and file.source_credentials
            user = OtherLogin(data) if complete else None
        case _:
            return NoGoogleLogin(
                f"{path} holds a kind of Google login that is not supported here; {REMEDY}"
            )
    return user or NoGoogleLogin(f"the Google login in {path} is not complete; {REMEDY}")


def user_token_request(user: AuthorizedUser) -> HttpRequest:
    """The request for an access token of a person's login."""
    return oauth.token_request(
        user.token_url,
        grant_type="refresh_token",
        client_id=user.client_id,
        client_secret=user.client_secret,
        refresh_token=user.refresh_token,
    )


def service_token_request(account: ServiceAccount, *, sign: Sign, now: int) -> HttpRequest:
    """The request for an access token of a service account. Raises UnusableKeyError."""
    issued = now // 1000
    head = {"alg": "RS256", "typ": "JWT", "kid": account.key_id}
    claims = {
        "iss": account.email,
        "scope": _SCOPE,
        "aud": account.token_url,
        "iat": issued,
        "exp": issued + _ASSERTION_SECONDS,
    }
    signing_input = b".".join(_base64(codec.encode(part)) for part in (head, claims))
    signed = b".".join((signing_input, _base64(sign(account.private_key, signing_input))))
    return oauth.token_request(account.token_url, grant_type=_GRANT, assertion=signed.decode())


def machine_token_request(account: MachineAccount) -> HttpRequest:
    """The request to the metadata server for an access token; Compute Engine documentation."""
    return HttpRequest(
        url=f"http://{account.host}{_METADATA_PATH}?{urlencode({'scopes': _SCOPE})}",
        headers={"metadata-flavor": "Google"},
        body=(),
        method="GET",
    )


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
    """Whether the URL is Google's or leads to this machine."""
    origin = keys.origin_of(url)
    if len(url) > limits.LOGIN_INPUT_CHARS_MAX or origin is None or urlsplit(url).username:
        return False
    return _ORIGIN.fullmatch(origin) is not None or loopback.is_loopback_url(url)
