"""The user's Google login in use: read from its file, exchanged for access tokens, never written.

What the file means is core.credentials.google. Only the user's environment says where it is; no
project does. Tokens stay in memory. Google does not replace a refresh token by its use, so a
renewal that is cut off loses nothing.

Invariant: a token belongs to the login that is in the file now.
"""

import asyncio
import os
from typing import Final

from perdure.core import limits
from perdure.core.credentials import google
from perdure.core.credentials.google import (
    FILE,
    REMEDY,
    GoogleLoginLookup,
    GoogleUser,
    NoGoogleLogin,
    ServiceAccount,
    Sign,
    UnusableKeyError,
)
from perdure.core.credentials.oauth import Tokens
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import CachedFiles
from perdure.llm.error import LLMError
from perdure.location.models.credentials import ask_for_tokens
from perdure.net.transport import HttpRequest, HttpTransport
from perdure.ports import Clock

_NO_SIGNATURE: Final = (
    "the login of a service account needs the Python package `cryptography`: install it, or"
    f" {REMEDY}"
)
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
        """Without `sign` there are no service accounts."""
        self._named = environment.variables.get(FILE, "")
        self._path = self._named or os.path.join(environment.home, _USUAL_FILE)
        self._files = CachedFiles(_read)
        self._transport = transport
        self._clock = clock
        self._sign = sign
        self._renewing = asyncio.Lock()
        self._held: tuple[GoogleUser, Tokens] | None = None

    def look(self) -> GoogleLoginLookup:
        """The login as it is now, or why there is none."""
        if not os.path.isabs(self._path):
            # Below a project's directory it would be the project that says who one is.
            return NoGoogleLogin(f"{FILE} is not an absolute path")
        found = self._files.get(self._path)
        if isinstance(found, ServiceAccount) and self._sign is None:
            return NoGoogleLogin(_NO_SIGNATURE)
        if found is not None:
            return found
        if self._named:
            return NoGoogleLogin(f"{FILE} names a file that is not there; {REMEDY}")
        return NoGoogleLogin(f"no Google login: {REMEDY}, or set {FILE}")

    async def access(self) -> str:
        """An access token, renewed if it is time; raises LLMError."""
        async with self._renewing:
            user = self.look()
            if isinstance(user, NoGoogleLogin):
                raise LLMError("authentication", f"The Google login is gone: {user.reason}")
            tokens = self._tokens_of(user)
            if tokens is None or _is_over(tokens.due, self._clock):
                tokens = await self._renewed(user, tokens)
            return tokens.access

    def _tokens_of(self, user: GoogleUser) -> Tokens | None:
        return self._held[1] if self._held is not None and self._held[0] == user else None

    async def _renewed(self, user: GoogleUser, tokens: Tokens | None) -> Tokens:
        answer = await ask_for_tokens(self._transport, self._request(user), self._clock)
        if isinstance(answer, Tokens):
            self._held = user, answer
            return answer
        if answer.final:
            self._held = None
            raise LLMError(
                "authentication", f"The Google login was refused: {answer.reason}; {REMEDY}"
            )
        if tokens is None or _is_over(tokens.expires, self._clock):
            raise LLMError("transport", f"The Google login could not be renewed: {answer.reason}")
        return tokens

    def _request(self, user: GoogleUser) -> HttpRequest:
        if not isinstance(user, ServiceAccount):
            return google.user_token_request(user)
        assert self._sign is not None, "without it there is no such login"
        try:
            now = self._clock.now_millis()
            return google.service_token_request(user, sign=self._sign, now=now)
        except UnusableKeyError as error:
            raise LLMError("authentication", f"The Google login is unusable: {error}") from error


def _is_over(time: int | None, clock: Clock) -> bool:
    return time is not None and time <= clock.now_millis()


def _read(path: str) -> GoogleLoginLookup:
    try:
        data = cached_files.read(path, bytes_max=limits.GOOGLE_LOGIN_BYTES_MAX)
    except OSError as error:
        return NoGoogleLogin(f"the Google login cannot be read: {error}")
    if data is None:
        return NoGoogleLogin(f"{path} is not a file that holds a Google login; {REMEDY}")
    return google.read(data, path=path)
