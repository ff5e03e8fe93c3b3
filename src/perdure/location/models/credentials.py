"""Stored credentials, and tokens of logins that are renewed before they expire.

core.credentials.keys decides what may be sent where; host.credentials.file stores them. One process
at a time renews a login, in a background task, so that an interrupted turn cannot cut it off
between the provider's answer and its record. After its first use a login is renewed ahead of time.

Invariant: a refresh token is sent once. A login that is due is checked again under the lock.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.credentials import oauth
from perdure.core.credentials.keys import StoreUnreadable
from perdure.core.credentials.oauth import Tokens, TokensRefused
from perdure.llm.error import LLMError
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.ports import Clock, CredentialStore, CredentialStoreError
from perdure.ports.tasks import StartTask
from perdure.schema.models.credential import StoredCredential, StoredLogin

logger = logging.getLogger(__name__)

_LOST = "its provider will not renew it"
_RAN_OUT = "it has expired, and its provider gave no refresh token"


class Credentials:
    """All credentials of the process. `changed` is called with each integration that changed."""

    def __init__(
        self,
        store: CredentialStore,
        *,
        transport: HttpTransport,
        clock: Clock,
        start: StartTask,
        changed: Callable[[str], None],
    ) -> None:
        self._store = store
        self._transport = transport
        self._clock = clock
        self._start = start
        self._changed = changed
        self._renewals: dict[str, asyncio.Future[str | None]] = {}
        self._kept_renewed: set[str] = set()
        self._seen: Mapping[str, StoredCredential] | None = None
        self._unsaved: dict[str, tuple[StoredLogin, StoredLogin]] = {}
        """The stored login and its renewed form, where that could not be written yet."""

    def stored(self) -> Mapping[str, StoredCredential] | StoreUnreadable:
        """The stored credentials; the same object while nothing changes.

        Calls `changed` for what this or another process changed since the last call.
        """
        try:
            now = self._store.look()
        except CredentialStoreError as error:
            self._seen = {}
            return StoreUnreadable(str(error))
        if now is not self._seen:
            before, self._seen = self._seen, now
            self._notify_changes(before if before is not None else now, now)
        return now

    async def put(self, credential: StoredCredential) -> None:
        """Store a credential, replacing its integration's. Raises CredentialStoreError."""
        self.stored()
        await asyncio.to_thread(self._store.put, credential, instead_of=None)
        self.stored()

    async def relabel(self, credential_id: str, label: str) -> bool:
        """Change a label; returns whether the credential exists. Raises CredentialStoreError."""
        while (found := self._by_id(credential_id)) is not None:
            named = replace(found, label=label)
            if await asyncio.to_thread(self._store.put, named, instead_of=found):
                self.stored()
                return True
        return False

    async def remove(self, credential_id: str) -> None:
        """Remove a credential if it exists. Raises CredentialStoreError."""
        self.stored()
        await asyncio.to_thread(self._store.remove, credential_id)
        self.stored()

    async def get_access_token(self, integration_id: str) -> str:
        """The access token of a login, renewed if it is due. Raises LLMError."""
        try:
            login = self._login(integration_id)
            reason = None
            if login is not None and oauth.needs_renewal(login, now=self._clock.now_millis()):
                reason = await self._join_renewal(integration_id)
                login = self._login(integration_id)
        except CredentialStoreError as error:
            raise LLMError("authentication", str(error)) from error
        if login is None:
            raise LLMError("authentication", f"There is no login for {integration_id} any more")
        if login.lost is not UNSET:
            raise LLMError("authentication", f"The login was lost: {login.lost}. Log in again")
        if oauth.has_expired(login, now=self._clock.now_millis()):
            raise LLMError("transport", f"The login could not be renewed: {reason}")
        self._keep_renewed(login)
        return login.access

    # ---- renewal --------------------------------------------------------------------------------

    async def _join_renewal(self, integration_id: str) -> str | None:
        """Start a renewal or wait for the running one; returns why it failed, if it did."""
        outcome = self._renewals.get(integration_id)
        if outcome is None:
            outcome = asyncio.get_running_loop().create_future()
            self._renewals[integration_id] = outcome
            self._start(self._renew(integration_id, outcome))
        return await asyncio.shield(outcome)

    async def _renew(self, integration_id: str, outcome: asyncio.Future[str | None]) -> None:
        reason: str | None = "it was interrupted"
        try:
            reason = await self._renew_locked(integration_id)
        except CredentialStoreError as error:
            reason = str(error)
        finally:
            del self._renewals[integration_id]
            outcome.set_result(reason)

    async def _renew_locked(self, integration_id: str) -> str | None:
        while True:
            with self._store.renewing(integration_id) as locked:
                login = self._login(integration_id)
                if login is None or not oauth.needs_renewal(login, now=self._clock.now_millis()):
                    # Renewed by another process, or removed.
                    return None
                if locked:
                    return await self._request_renewal(login)
            await self._clock.sleep(limits.LOGIN_LOCK_SECONDS)

    async def _request_renewal(self, login: StoredLogin) -> str | None:
        if login.refresh is UNSET:
            if oauth.has_expired(login, now=self._clock.now_millis()):
                await self._save(login, replace(login, lost=_RAN_OUT, due=UNSET))
            return None
        answer = await request_tokens(self._transport, oauth.renewal_request(login), self._clock)
        if isinstance(answer, Tokens):
            await self._save(login, oauth.with_tokens(login, answer))
            return None
        if answer.final:
            lost = f"{_LOST} ({answer.reason})"
            await self._save(login, replace(login, lost=lost, due=UNSET))
        return answer.reason

    async def _save(self, before: StoredLogin, after: StoredLogin) -> None:
        name = before.integration_id
        stored, _ = self._unsaved.get(name, (before, before))
        try:
            await asyncio.to_thread(self._store.put, after, instead_of=stored)
        except CredentialStoreError as error:
            # The old refresh token may be used up: keep the new one even if the disk is full.
            self._unsaved[name] = stored, after
            logger.warning("a renewed login is not stored yet: %s", error)
        else:
            self._unsaved.pop(name, None)
        self.stored()

    def _keep_renewed(self, login: StoredLogin) -> None:
        """Renew the login ahead of time from now on, while this process lives."""
        if login.due is not UNSET and login.integration_id not in self._kept_renewed:
            self._kept_renewed.add(login.integration_id)
            self._start(self._renew_ahead(login.integration_id))

    async def _renew_ahead(self, integration_id: str) -> None:
        try:
            while True:
                login = self._login(integration_id)
                if login is None or login.due is UNSET or login.refresh is UNSET:
                    return
                wait = (login.due - self._clock.now_millis()) / 1000
                # Bounded, because the clock may be set forward and the machine may sleep.
                await self._clock.sleep(min(max(wait, 0), limits.LOGIN_LOOK_SECONDS))
                if oauth.needs_renewal(login, now=self._clock.now_millis()):
                    failed = await self._join_renewal(integration_id)
                    if failed is not None:
                        await self._clock.sleep(limits.LOGIN_RETRY_SECONDS)
        except CredentialStoreError as error:
            logger.warning("a login is not renewed ahead of time: %s", error)
        finally:
            self._kept_renewed.discard(integration_id)

    def _login(self, integration_id: str) -> StoredLogin | None:
        found = self._store.look().get(integration_id)
        if not isinstance(found, StoredLogin):
            return None
        stored, unsaved = self._unsaved.get(integration_id, (None, found))
        return unsaved if stored == found else found

    def _notify_changes(
        self, before: Mapping[str, StoredCredential], now: Mapping[str, StoredCredential]
    ) -> None:
        for name in sorted(before.keys() | now.keys()):
            if _public_state(before, name) != _public_state(now, name):
                self._changed(name)

    def _by_id(self, credential_id: str) -> StoredCredential | None:
        found = (each for each in self._store.look().values() if each.id == credential_id)
        return next(found, None)


def _public_state(stored: Mapping[str, StoredCredential], name: str) -> tuple[object, ...]:
    """The part of a credential whose change is announced; a renewed token is not."""
    found = stored.get(name)
    if found is None:
        return ()
    return found.id, found.label, found.lost if isinstance(found, StoredLogin) else UNSET


async def request_tokens(
    transport: HttpTransport, request: HttpRequest, clock: Clock
) -> Tokens | TokensRefused:
    """Send a token request and read its answer. Never raises for a server's behaviour."""
    answer = await send_login_request(transport, request)
    if isinstance(answer, TokensRefused):
        return answer
    status, body = answer
    return oauth.read_tokens(status=status, body=body, now=clock.now_millis())


async def send_login_request(
    transport: HttpTransport, request: HttpRequest
) -> tuple[int, bytes] | TokensRefused:
    """Status and body of an answer, within bounds. Never raises for a server's behaviour."""
    body = bytearray()
    try:
        async with (
            asyncio.timeout(limits.LOGIN_ANSWER_SECONDS_MAX),
            transport.open(request) as response,
        ):
            async for chunk in response.chunks:
                body += chunk
                if len(body) > limits.LOGIN_ANSWER_BYTES_MAX:
                    return TokensRefused("the provider's answer is too long", final=False)
    except (TransportError, TimeoutError):
        # A transport's message may contain more than the user should see.
        return TokensRefused("the provider cannot be reached", final=False)
    return response.status, bytes(body)
