"""The user's Google login: read from its file, exchanged for access tokens, never written.

core.credentials.google interprets the file. Only the user's environment names it, never a project.
Without a file, the account of a machine of Google Cloud is the login. Tokens stay in memory. Google
does not replace a used refresh token, so an interrupted renewal loses nothing.

Invariant: a token belongs to the login that is in the file now.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.core.credentials import google, oauth
from perdure.core.credentials.google import (
    FILE,
    REMEDY,
    AuthorizedUser,
    GoogleLoginLookup,
    GoogleUser,
    MachineAccount,
    NoGoogleLogin,
    OtherLogin,
    ServiceAccount,
    Sign,
    UnusableKeyError,
)
from perdure.core.credentials.oauth import Tokens, TokensRefused
from perdure.host.credentials import google_auth
from perdure.host.credentials.google_auth import Answer, GoogleAuthError, GoogleAuthSource
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import CachedFiles
from perdure.llm.error import LLMError
from perdure.location.models.credentials import request_tokens
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.ports import Clock

_NO_SIGNATURE: Final = (
    "the login of a service account needs the Python package `cryptography`: install"
    f" `perdure[vertex]`, or {REMEDY}"
)
_NO_PACKAGE: Final = (
    "this kind of Google login needs the Python package `google-auth`: install"
    f" `perdure[vertex]`, or {REMEDY}"
)
_HOSTED: Final = ("GCE_METADATA_HOST", "K_SERVICE", "CLOUD_RUN_JOB", "FUNCTION_TARGET")
"""Variables that are set where Google Cloud runs the program."""
_USUAL_FILE: Final = ".config/gcloud/application_default_credentials.json"


class GoogleLogin:
    def __init__(
        self,
        environment: Environment,
        *,
        transport: HttpTransport,
        clock: Clock,
        sign: Sign | None,
    ) -> None:
        """Without `sign`, service accounts cannot be used."""
        self._named = environment.variables.get(FILE, "")
        self._path = self._named or os.path.join(environment.home, _USUAL_FILE)
        self._files = CachedFiles(_read)
        self._transport = transport
        self._clock = clock
        self._sign = sign
        self._metadata_host = environment.variables.get("GCE_METADATA_HOST", "")
        self._is_hosted = any(environment.variables.get(name) for name in _HOSTED)
        self._at_google: bool | None = None
        self._renewing = asyncio.Lock()
        self._cached: tuple[GoogleUser, Tokens] | None = None

    def load(self) -> GoogleLoginLookup:
        """The current login, or why there is none."""
        if not os.path.isabs(self._path):
            # A relative path could name a file of the project, which must not choose the login.
            return NoGoogleLogin(f"{FILE} is not an absolute path")
        found = self._read()
        if isinstance(found, ServiceAccount) and self._sign is None:
            return NoGoogleLogin(_NO_SIGNATURE)
        if found is None and not self._named and self._is_at_google():
            return MachineAccount(self._metadata_host or google.METADATA_HOST)
        if isinstance(found, OtherLogin) and not google_auth.is_installed():
            return NoGoogleLogin(_NO_PACKAGE)
        if found is not None:
            return found
        if self._named:
            return NoGoogleLogin(f"{FILE} names a file that is not there; {REMEDY}")
        return NoGoogleLogin(f"no Google login: {REMEDY}, or set {FILE}")

    def _read(self) -> GoogleLoginLookup | None:
        """The login in the file; as it was last read while that cannot be looked at."""
        try:
            return self._files.get(self._path)
        except OSError as error:
            known = self._files.last_read(self._path)
            return known or NoGoogleLogin(f"the Google login cannot be read: {error}")

    async def get_access_token(self) -> str:
        """An access token, renewed if it is due. Raises LLMError."""
        async with self._renewing:
            user = self.load()
            if isinstance(user, NoGoogleLogin):
                raise LLMError("authentication", f"The Google login is gone: {user.reason}")
            tokens = self._cached_tokens(user)
            if tokens is None or _is_past(tokens.due, self._clock):
                tokens = await self._renew(user, tokens)
            return tokens.access

    def _cached_tokens(self, user: GoogleUser) -> Tokens | None:
        return self._cached[1] if self._cached is not None and self._cached[0] == user else None

    async def _renew(self, user: GoogleUser, tokens: Tokens | None) -> Tokens:
        if isinstance(user, OtherLogin):
            answer = await self._ask_package(user)
        else:
            answer = await request_tokens(self._transport, self._request(user), self._clock)
        if isinstance(answer, Tokens):
            self._cached = user, answer
            return answer
        if answer.final:
            self._cached = None
            raise LLMError(
                "authentication", f"The Google login was refused: {answer.reason}; {REMEDY}"
            )
        if tokens is None or _is_past(tokens.expires, self._clock):
            raise LLMError("transport", f"The Google login could not be renewed: {answer.reason}")
        return tokens

    def _is_at_google(self) -> bool:
        if self._at_google is None:
            self._at_google = self._is_hosted or google_auth.is_machine_of_google()
        return self._at_google

    async def _ask_package(self, login: OtherLogin) -> Tokens | TokensRefused:
        loop = asyncio.get_running_loop()

        def send(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
            sent = self._send(method, url, headers, body)
            return asyncio.run_coroutine_threadsafe(sent, loop).result()

        source = GoogleAuthSource(send)
        try:
            async with asyncio.timeout(limits.LOGIN_ANSWER_SECONDS_MAX):
                token = await asyncio.to_thread(source.get, login.content)
        except TimeoutError:
            return TokensRefused("it did not answer in time", final=False)
        except GoogleAuthError as error:
            return TokensRefused(str(error), final=False)
        return oauth.access_only(token.value, expires=token.expires, now=self._clock.now_millis())

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        request = HttpRequest(url=url, headers=headers, body=(body,) if body else (), method=method)
        data = bytearray()
        try:
            async with self._transport.open(request) as response:
                async for chunk in response.chunks:
                    data += chunk
                    if len(data) > limits.LOGIN_ANSWER_BYTES_MAX:
                        raise GoogleAuthError("the answer is too long")
        except TransportError:
            # A transport's message may contain more than the user should see.
            raise GoogleAuthError("Google cannot be reached") from None
        return Answer(response.status, response.headers, bytes(data))

    def _request(self, user: AuthorizedUser | ServiceAccount | MachineAccount) -> HttpRequest:
        if isinstance(user, MachineAccount):
            return google.machine_token_request(user)
        if not isinstance(user, ServiceAccount):
            return google.user_token_request(user)
        assert self._sign is not None, "load() refuses a service account without it"
        try:
            now = self._clock.now_millis()
            return google.service_token_request(user, sign=self._sign, now=now)
        except UnusableKeyError as error:
            raise LLMError("authentication", f"The Google login is unusable: {error}") from error


def _is_past(time: int | None, clock: Clock) -> bool:
    return time is not None and time <= clock.now_millis()


def _read(path: str) -> GoogleLoginLookup:
    """Read the login. Raises OSError."""
    data = cached_files.read(path, bytes_max=limits.GOOGLE_LOGIN_BYTES_MAX)
    if data is None:
        return NoGoogleLogin(f"{path} is not a file that holds a Google login; {REMEDY}")
    return google.read(data, path=path)
