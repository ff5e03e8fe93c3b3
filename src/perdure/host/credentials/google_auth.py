"""Access tokens of Google logins that the optional package `google-auth` knows.

These are federation (workload and workforce identities) and impersonation. The package sends its
requests with the function that it is given. Only this module uses the package. Everything here may
take seconds: call it in a thread.
"""

import importlib
import importlib.util
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol, cast

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Confidential

_PACKAGE: Final = "google.auth"
_SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]
_PRODUCT_FILE: Final = "/sys/class/dmi/id/product_name"
_PRODUCT_CHARS_MAX: Final = 64
_MODULES: Final = {
    "external_account_authorized_user": "external_account_authorized_user",
    "impersonated_service_account": "impersonated_credentials",
}


class GoogleAuthError(Exception):
    """No token could be got. The message says why, and holds no secret."""


class Answer(Confidential):
    """An HTTP answer, in the form that the package reads."""

    status: int
    headers: Mapping[str, str]
    data: bytes


Send = Callable[[str, str, Mapping[str, str], bytes], Answer]
"""Sends a request with this method, URL, headers and body."""


class AccessToken(Confidential):
    value: str
    expires: int | None
    """In milliseconds since the epoch."""


class _Credentials(Protocol):
    token: str | None
    expiry: datetime | None

    def refresh(self, request: object) -> None: ...


class _CredentialsClass(Protocol):
    def from_info(self, info: JsonObject, *, scopes: list[str]) -> _Credentials: ...
    def from_impersonated_service_account_info(
        self, info: JsonObject, *, scopes: list[str]
    ) -> _Credentials: ...


class _Exceptions(Protocol):
    GoogleAuthError: type[Exception]


class GoogleAuthSource:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = threading.Lock()

    def get(self, login: bytes) -> AccessToken:
        """A new token of a login, given the content of its file. Raises GoogleAuthError."""
        raised = cast("_Exceptions", importlib.import_module(f"{_PACKAGE}.exceptions"))
        try:
            with self._lock:
                credentials = _credentials(login)
                credentials.refresh(self._request)
        except (raised.GoogleAuthError, ValueError, KeyError) as error:
            # Not chained, and without the answer's body: that may quote a token.
            reason = str(error.args[0]) if error.args else type(error).__name__
            raise GoogleAuthError(reason[:200]) from None
        if not credentials.token:
            raise GoogleAuthError("the answer has no token")
        expiry = credentials.expiry
        expires = None if expiry is None else int(expiry.replace(tzinfo=UTC).timestamp() * 1000)
        return AccessToken(credentials.token, expires)

    def _request(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> Answer:
        """What the package calls to send a request."""
        data = body.encode() if isinstance(body, str) else body or b""
        return self._send(method, url, headers or {}, data)


def is_installed() -> bool:
    try:
        return importlib.util.find_spec(_PACKAGE) is not None
    except ModuleNotFoundError:
        # There is no package `google` at all.
        return False


def is_machine_of_google() -> bool:
    """Whether this is a virtual machine of Google Cloud, which may have an account of its own."""
    try:
        with open(_PRODUCT_FILE, encoding="ascii", errors="replace") as file:
            return file.read(_PRODUCT_CHARS_MAX).startswith("Google")
    except OSError:
        return False


def _credentials(login: bytes) -> _Credentials:
    info = codec.decode(dict[str, object], login)
    kind = str(info.get("type", ""))
    if kind == "impersonated_service_account":
        found = _class(_MODULES[kind])
        return found.from_impersonated_service_account_info(info, scopes=_SCOPES)
    return _class(_MODULES.get(kind) or _federation(info)).from_info(info, scopes=_SCOPES)


def _federation(info: JsonObject) -> str:
    """The module for a federated identity, by where the identity comes from."""
    source = info.get("credential_source")
    if info.get("subject_token_type") == "urn:ietf:params:aws:token-type:aws4_request":
        return "aws"
    return "pluggable" if isinstance(source, dict) and "executable" in source else "identity_pool"


def _class(module: str) -> _CredentialsClass:
    return cast("_CredentialsClass", importlib.import_module(f"{_PACKAGE}.{module}").Credentials)
