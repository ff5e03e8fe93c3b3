"""Stored credentials in use: which there are now, and tokens that are renewed before they run out.

What may be sent where is core.credentials.keys; the file is host.credentials.file. A login is
renewed by one process at a time, beside everything else: an interrupted turn does not cut it off
between the provider's answer and its record. From its first use on a login is renewed before
anybody waits.

Invariant: a refresh token is sent once. Whoever finds a login due looks again under the lock.
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
_RAN_OUT = "it has run out, and its provider gave nothing to renew it with"


class Credentials:
    """Every credential of the process. `changed` hears of an integration whose state changed."""

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
        self._attended: set[str] = set()
        self._seen: Mapping[str, StoredCredential] | None = None
        self._unsaved: dict[str, tuple[StoredLogin, StoredLogin]] = {}
        """What is stored and should be, where a new token could not be written yet."""

    def stored(self) -> Mapping[str, StoredCredential] | StoreUnreadable:
        """What is stored now; the very same object while nothing changes.

        Whatever changed since it was last asked, here or in another process, is told.
        """
        try:
            now = self._store.look()
        except CredentialStoreError as error:
            self._seen = {}
            return StoreUnreadable(str(error))
        if now is not self._seen:
            before, self._seen = self._seen, now
            self._tell(before if before is not None else now, now)
        return now

    async def put(self, credential: StoredCredential) -> None:
        """Store it in place of what its integration has; raises CredentialStoreError."""
        self.stored()
        await asyncio.to_thread(self._store.put, credential, instead_of=None)
        self.stored()

    async def relabel(self, credential_id: str, label: str) -> bool:
        """Whether there is such a credential; raises CredentialStoreError."""
        while (found := self._by_id(credential_id)) is not None:
            named = replace(found, label=label)
            if await asyncio.to_thread(self._store.put, named, instead_of=found):
                self.stored()
                return True
        return False

    async def remove(self, credential_id: str) -> None:
        """Forget it, if it is there; raises CredentialStoreError."""
        self.stored()
        await asyncio.to_thread(self._store.remove, credential_id)
        self.stored()

    async def access(self, integration_id: str) -> str:
        """The access token of a login, renewed if it is time; raises LLMError."""
        try:
            login = self._login(integration_id)
            reason = None
            if login is not None and oauth.needs_renewal(login, now=self._clock.now_millis()):
                reason = await self._renewal(integration_id)
                login = self._login(integration_id)
        except CredentialStoreError as error:
            raise LLMError("authentication", str(error)) from error
        if login is None:
            raise LLMError("authentication", f"There is no login for {integration_id} any more")
        if login.lost is not UNSET:
            raise LLMError("authentication", f"The login was lost: {login.lost}. Log in again")
        if oauth.has_expired(login, now=self._clock.now_millis()):
            raise LLMError("transport", f"The login could not be renewed: {reason}")
        self._attend(login)
        return login.access

    # ---- renewal --------------------------------------------------------------------------------

    async def _renewal(self, integration_id: str) -> str | None:
        """Wait for the one renewal that runs here; why it failed, if it did."""
        outcome = self._renewals.get(integration_id)
        if outcome is None:
            outcome = asyncio.get_running_loop().create_future()
            self._renewals[integration_id] = outcome
            self._start(self._renew(integration_id, outcome))
        return await asyncio.shield(outcome)

    async def _renew(self, integration_id: str, outcome: asyncio.Future[str | None]) -> None:
        reason: str | None = "it was interrupted"
        try:
            reason = await self._renew_alone(integration_id)
        except CredentialStoreError as error:
            reason = str(error)
        finally:
            del self._renewals[integration_id]
            outcome.set_result(reason)

    async def _renew_alone(self, integration_id: str) -> str | None:
        while True:
            with self._store.renewing(integration_id) as mine:
                login = self._login(integration_id)
                if login is None or not oauth.needs_renewal(login, now=self._clock.now_millis()):
                    # Renewed by another process, or removed.
                    return None
                if mine:
                    return await self._renew_held(login)
            await self._clock.sleep(limits.LOGIN_LOCK_SECONDS)

    async def _renew_held(self, login: StoredLogin) -> str | None:
        if login.refresh is UNSET:
            if oauth.has_expired(login, now=self._clock.now_millis()):
                await self._save(login, replace(login, lost=_RAN_OUT, due=UNSET))
            return None
        answer = await ask_for_tokens(self._transport, oauth.renewal_request(login), self._clock)
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
            # The old refresh token may be spent: the new one must not be lost with a full disk.
            self._unsaved[name] = stored, after
            logger.warning("a renewed login is not stored yet: %s", error)
        else:
            self._unsaved.pop(name, None)
        self.stored()

    def _attend(self, login: StoredLogin) -> None:
        """From now on renew it in time, while this process lives."""
        if login.due is not UNSET and login.integration_id not in self._attended:
            self._attended.add(login.integration_id)
            self._start(self._attended_to(login.integration_id))

    async def _attended_to(self, integration_id: str) -> None:
        try:
            while True:
                login = self._login(integration_id)
                if login is None or login.due is UNSET or login.refresh is UNSET:
                    return
                wait = (login.due - self._clock.now_millis()) / 1000
                # Not longer: a clock may be set forward, and a machine sleeps.
                await self._clock.sleep(min(max(wait, 0), limits.LOGIN_LOOK_SECONDS))
                if oauth.needs_renewal(login, now=self._clock.now_millis()):
                    failed = await self._renewal(integration_id)
                    if failed is not None:
                        await self._clock.sleep(limits.LOGIN_RETRY_SECONDS)
        except CredentialStoreError as error:
            logger.warning("a login is not renewed ahead of time: %s", error)
        finally:
            self._attended.discard(integration_id)

    def _login(self, integration_id: str) -> StoredLogin | None:
        found = self._store.look().get(integration_id)
        if not isinstance(found, StoredLogin):
            return None
        stored, unsaved = self._unsaved.get(integration_id, (None, found))
        return unsaved if stored == found else found

    def _tell(
        self, before: Mapping[str, StoredCredential], now: Mapping[str, StoredCredential]
    ) -> None:
        for name in sorted(before.keys() | now.keys()):
            if _shown(before, name) != _shown(now, name):
                self._changed(name)

    def _by_id(self, credential_id: str) -> StoredCredential | None:
        found = (each for each in self._store.look().values() if each.id == credential_id)
        return next(found, None)


def _shown(stored: Mapping[str, StoredCredential], name: str) -> tuple[object, ...]:
    """What somebody could notice of a credential; that a token is another one is nobody's news."""
    found = stored.get(name)
    if found is None:
        return ()
    return found.id, found.label, found.lost if isinstance(found, StoredLogin) else UNSET


async def ask_for_tokens(
    transport: HttpTransport, request: HttpRequest, clock: Clock
) -> Tokens | TokensRefused:
    """Send a token request and read its answer. Never raises for what a server does."""
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
        # The message of a transport may name more than a person should see.
        return TokensRefused("the provider cannot be reached", final=False)
    return oauth.read_tokens(status=response.status, body=bytes(body), now=clock.now_millis())
