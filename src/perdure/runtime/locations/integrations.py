"""Connecting integrations: API keys, and OAuth logins that the user finishes in a browser.

A login attempt lives ten minutes, in this process only. Each integration has one at a time; a new
attempt ends the one before. It is completed by the browser's redirect to this machine or by a code
that the user pastes, whichever comes first. location.models.credentials renews stored tokens.

Invariant: a redirect or code that does not match an attempt leaves it unchanged, and a code is
exchanged at most once.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.credentials import keys, oauth
from perdure.core.credentials.device_login import DeviceCode
from perdure.core.credentials.oauth import Code, LoginMethod, NoCode, Tokens, TokensRefused
from perdure.host.http import oauth_callback
from perdure.host.http.oauth_callback import CallbackError, Page
from perdure.location.models.credentials import Credentials, request_tokens
from perdure.location.registry import LocationRegistry
from perdure.net.transport import HttpTransport
from perdure.ports import Clock, CredentialStoreError, IdSource
from perdure.ports.tasks import StartTask
from perdure.runtime.locations import device_login, login_attempt
from perdure.runtime.locations.login_attempt import LoginAttempt
from perdure.runtime.tasks import shielded
from perdure.schema.errors import (
    AttemptNotFoundError,
    CredentialNotFoundError,
    InvalidRequestError,
    ServiceUnavailableError,
)
from perdure.schema.location import LocationRef
from perdure.schema.models.credential import StoredCredential, StoredKey, StoredLogin
from perdure.schema.models.integration import (
    Attempt,
    AttemptComplete,
    AttemptExpired,
    AttemptFailed,
    AttemptPending,
    AttemptStatus,
    AttemptTime,
    IntegrationInfo,
)
from perdure.schema.value import Confidential

CODE_REQUIRED: Final = "integration_code_required"
_ENTROPY_BYTES: Final = 32
_KEY_LABEL: Final = "API key"
_AUTO: Final = "Log in at this address in a browser on this machine, then come back."
_DEVICE: Final = "Open this address in any browser and enter the code {}."
_CODE: Final = "Log in at this address in a browser, then enter the code that it shows."


class LoginServices(Confidential, kw_only=True):
    """The ports that a login uses."""

    transport: HttpTransport
    clock: Clock
    ids: IdSource
    entropy: Callable[[int], bytes]
    """Returns so many unpredictable bytes."""
    start: StartTask


class Integrations:
    """Each method that takes a Location raises InvalidRequestError if it cannot be one."""

    def __init__(
        self, locations: LocationRegistry, credentials: Credentials, services: LoginServices
    ) -> None:
        self._locations = locations
        self._credentials = credentials
        self._transport = services.transport
        self._clock = services.clock
        self._ids = services.ids
        self._entropy = services.entropy
        self._start = services.start
        self._attempts: dict[str, LoginAttempt] = {}
        self._sweeping = False

    async def list(self, ref: LocationRef) -> tuple[IntegrationInfo, ...]:
        return (await self._locations.get(ref)).integrations.list()

    async def get(self, ref: LocationRef, integration_id: str) -> IntegrationInfo:
        return (await self._locations.get(ref)).integrations.get(integration_id)

    async def connect_key(
        self, ref: LocationRef, integration_id: str, key: str, *, label: str | None
    ) -> None:
        """Store a key, to be sent only to the addresses that the provider has now."""
        origins = (await self._locations.get(ref)).integrations.origins(integration_id)
        if fault := keys.key_fault(key):
            raise login_attempt.refused(f"This cannot be a key: {fault}")
        await self._store(
            StoredKey(
                id=self._ids.named("cred"),
                integration_id=integration_id,
                label=_checked_label(label or _KEY_LABEL),
                origins=origins,
                time_created=self._clock.now_millis(),
                key=key,
            )
        )

    async def relabel(self, credential_id: str, label: str) -> None:
        try:
            known = await self._credentials.relabel(credential_id, _checked_label(label))
        except CredentialStoreError as error:
            raise _unavailable(error) from error
        if not known:
            raise CredentialNotFoundError(credential_id)

    async def remove(self, credential_id: str) -> None:
        """Remove a credential; an unknown id is not an error."""
        try:
            await self._credentials.remove(credential_id)
        except CredentialStoreError as error:
            raise _unavailable(error) from error

    # ---- attempts -------------------------------------------------------------------------------

    async def connect_oauth(
        self,
        ref: LocationRef,
        integration_id: str,
        *,
        method_id: str,
        inputs: Mapping[str, str],
        label: str | None,
    ) -> Attempt:
        location = await self._locations.get(ref)
        method = location.integrations.method(integration_id, method_id)
        origins = location.integrations.origins(integration_id)
        if fault := oauth.check_inputs(method, inputs):
            raise login_attempt.refused(f"The login cannot begin: {fault}")
        named = _checked_label(label or method.label)
        return await self.begin_login(
            integration_id, method, label=named, origins=origins, inputs=inputs
        )

    async def begin_login(
        self,
        integration_id: str,
        method: LoginMethod,
        *,
        label: str,
        origins: tuple[str, ...],
        inputs: Mapping[str, str] = MappingProxyType({}),
    ) -> Attempt:
        """Begin a login by any method; its tokens may be sent to `origins`."""
        attempt = self._begin(integration_id, method, label=label, origins=origins)
        if method.device_url:
            return await self._begin_device_login(attempt, inputs)
        await self._open_callback(attempt)
        url = oauth.authorize_url(
            method,
            state=attempt.state,
            verifier=attempt.verifier,
            redirect=attempt.redirect,
            inputs=inputs,
        )
        has_callback = attempt.callback is not None
        return Attempt(
            attempt_id=attempt.id,
            url=url,
            instructions=_AUTO if has_callback else _CODE,
            mode="auto" if has_callback else "code",
            time=attempt.time,
        )

    async def status(self, attempt_id: str) -> AttemptStatus:
        return self._attempt(attempt_id).status

    async def complete(self, attempt_id: str, code: str | None) -> None:
        attempt = self._attempt(attempt_id)
        login_attempt.require_open(attempt)
        if attempt.method.device_url:
            raise login_attempt.refused("This login needs no code: it is completed in the browser")
        if not code:
            raise InvalidRequestError(
                "The code that the browser shows is needed", kind=CODE_REQUIRED
            )
        answer = oauth.read_pasted(code, attempt.state)
        if isinstance(answer, NoCode):
            raise login_attempt.refused(f"This code cannot be used: {answer.reason}")
        await self._exchange(attempt, answer)

    async def cancel(self, attempt_id: str) -> None:
        """End an attempt; an unknown id is not an error."""
        attempt = self._attempts.pop(attempt_id, None)
        if attempt is not None and attempt.is_open:
            self._end(attempt, AttemptFailed("It was cancelled", attempt.time))

    def close(self) -> None:
        """End every attempt."""
        while self._attempts:
            _, attempt = self._attempts.popitem()
            login_attempt.close_callback(attempt)

    def _begin(
        self, integration_id: str, method: LoginMethod, *, label: str, origins: tuple[str, ...]
    ) -> LoginAttempt:
        for other in self._attempts.values():
            if other.integration_id == integration_id and other.is_open:
                self._end(other, AttemptFailed("A newer login replaced it", other.time))
        if sum(each.is_open for each in self._attempts.values()) >= limits.ATTEMPTS_OPEN_MAX:
            raise login_attempt.refused("Too many logins are under way")
        now = self._clock.now_millis()
        time = AttemptTime(created=now, expires=now + limits.ATTEMPT_SECONDS_MAX * 1000)
        attempt = LoginAttempt(
            id=self._ids.named("att"),
            integration_id=integration_id,
            method=method,
            label=label,
            origins=origins,
            verifier=oauth.secret_text(self._entropy(_ENTROPY_BYTES)),
            state=oauth.secret_text(self._entropy(_ENTROPY_BYTES)),
            time=time,
            status=AttemptPending(time),
        )
        self._attempts[attempt.id] = attempt
        if not self._sweeping:
            self._sweeping = True
            self._start(self._sweep())
        return attempt

    async def _open_callback(self, attempt: LoginAttempt) -> None:
        method = attempt.method
        if not method.returns_here:
            attempt.redirect = method.redirect_url or ""
            return
        try:
            answer = partial(self._handle_redirect, attempt)
            attempt.callback = await oauth_callback.listen(method.redirect_url, answer)
        except CallbackError as error:
            del self._attempts[attempt.id]
            raise login_attempt.refused(f"The login cannot begin: {error}") from error
        attempt.redirect = attempt.callback.url
        if not attempt.is_open:
            # A newer attempt replaced this one before its callback was listening.
            login_attempt.close_callback(attempt)
            login_attempt.require_open(attempt)

    async def _handle_redirect(self, attempt: LoginAttempt, parameters: Mapping[str, str]) -> Page:
        """Complete or fail an attempt; return the page for the browser."""
        try:
            login_attempt.require_open(attempt)
            answer = oauth.read_redirect(parameters, attempt.state)
            if isinstance(answer, Code):
                await self._exchange(attempt, answer)
                return Page(200, "You are logged in. You can close this page.")
            if answer.ours:
                self._end(attempt, AttemptFailed(f"The login: {answer.reason}", attempt.time))
            return Page(400, f"The login did not succeed: {answer.reason}.")
        except (InvalidRequestError, ServiceUnavailableError) as error:
            return Page(400, error.message)

    async def _exchange(self, attempt: LoginAttempt, code: Code) -> None:
        login_attempt.require_open(attempt)
        attempt.exchanging = True
        try:
            # The client may disconnect; what the provider answered is stored all the same.
            await shielded(self._exchange_once(attempt, code))
        finally:
            attempt.exchanging = False

    async def _exchange_once(self, attempt: LoginAttempt, code: Code) -> None:
        request = oauth.exchange_request(
            attempt.method, code=code, verifier=attempt.verifier, redirect=attempt.redirect
        )
        await self._take(attempt, await request_tokens(self._transport, request, self._clock))

    async def _begin_device_login(
        self, attempt: LoginAttempt, inputs: Mapping[str, str]
    ) -> Attempt:
        code = await device_login.request_code(self._transport, attempt.method, inputs)
        if not isinstance(code, DeviceCode):
            self._attempts.pop(attempt.id, None)
            raise login_attempt.refused(f"The login cannot begin: {code.reason}")
        login_attempt.require_open(attempt)
        expires = min(attempt.time.expires, self._clock.now_millis() + code.seconds * 1000)
        attempt.time = AttemptTime(created=attempt.time.created, expires=expires)
        attempt.status = AttemptPending(attempt.time)
        self._start(self._await_device(attempt, code))
        instructions = _DEVICE.format(code.user_code)
        return Attempt(
            attempt_id=attempt.id,
            url=code.url,
            instructions=instructions,
            mode="auto",
            time=attempt.time,
        )

    async def _await_device(self, attempt: LoginAttempt, code: DeviceCode) -> None:
        def is_open() -> bool:
            self._expire(attempt)
            return attempt.is_open and attempt.id in self._attempts

        answer = await device_login.wait_for_tokens(
            self._transport, self._clock, attempt.method, code, is_open=is_open
        )
        if answer is not None:
            with suppress(InvalidRequestError, ServiceUnavailableError):
                # The status of the attempt says what happened.
                await self._take(attempt, answer)

    async def _take(self, attempt: LoginAttempt, answer: Tokens | TokensRefused) -> None:
        """Store the tokens of an attempt and end it. Raises what the client is told."""
        if not isinstance(answer, Tokens):
            reason = f"The login was refused: {answer.reason}"
            self._end(attempt, AttemptFailed(reason, attempt.time))
            raise login_attempt.refused(reason)
        if not attempt.is_open:
            raise login_attempt.refused("This login was ended before it could be completed")
        try:
            await self._store(self._login(attempt, answer))
        except ServiceUnavailableError as error:
            self._end(attempt, AttemptFailed(error.message, attempt.time))
            raise
        self._end(attempt, AttemptComplete(attempt.time))

    def _login(self, attempt: LoginAttempt, tokens: Tokens) -> StoredLogin:
        return oauth.with_tokens(
            StoredLogin(
                id=self._ids.named("cred"),
                integration_id=attempt.integration_id,
                label=attempt.label,
                origins=attempt.origins,
                time_created=self._clock.now_millis(),
                token_url=attempt.method.token_url,
                client_id=attempt.method.client_id,
                client_secret=attempt.method.client_secret or UNSET,
                secret_place=attempt.method.secret_place if attempt.method.client_secret else UNSET,
                access=tokens.access,
                refresh=UNSET,
            ),
            tokens,
        )

    async def _store(self, stored: StoredCredential) -> None:
        try:
            await self._credentials.put(stored)
        except CredentialStoreError as error:
            raise _unavailable(error) from error

    # ---- end of attempts ------------------------------------------------------------------------

    def _attempt(self, attempt_id: str) -> LoginAttempt:
        attempt = self._attempts.get(attempt_id)
        if attempt is None:
            raise AttemptNotFoundError(attempt_id)
        self._expire(attempt)
        return attempt

    def _expire(self, attempt: LoginAttempt) -> None:
        over = self._clock.now_millis() >= attempt.time.expires
        if over and attempt.is_open and not attempt.exchanging:
            self._end(attempt, AttemptExpired(attempt.time))

    def _end(self, attempt: LoginAttempt, status: AttemptStatus) -> None:
        attempt.status = status
        attempt.ended_at = self._clock.now_millis()
        login_attempt.close_callback(attempt)

    async def _sweep(self) -> None:
        """While there are attempts: expire old ones, and forget those that ended long ago."""
        kept = limits.ATTEMPT_KEPT_SECONDS * 1000
        while self._attempts:
            await self._clock.sleep(limits.ATTEMPT_SWEEP_SECONDS)
            now = self._clock.now_millis()
            for attempt in tuple(self._attempts.values()):
                self._expire(attempt)
                if attempt.ended_at is not None and now - attempt.ended_at >= kept:
                    del self._attempts[attempt.id]
        self._sweeping = False


def _checked_label(label: str) -> str:
    fits = 0 < len(label) <= limits.CREDENTIAL_LABEL_CHARS_MAX
    if not fits or not label.isprintable():
        most = limits.CREDENTIAL_LABEL_CHARS_MAX
        raise InvalidRequestError(
            f"A label is one line of at most {most} characters", kind="Payload", field="label"
        )
    return label


def _unavailable(error: CredentialStoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError(str(error), service="credentials")
