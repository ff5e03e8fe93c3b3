"""The user's Google login in use: tokens are renewed in time, and failures tell no secret."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator

import pytest

from perdure.core import limits
from perdure.core.credentials.google import NoGoogleLogin, Sign, UnusableKeyError
from perdure.host.http.client import HttptoolsTransport
from perdure.llm.error import LLMError
from perdure.location.models.google_login import GoogleLogin
from perdure.schema import codec
from perdure.testing import ManualClock
from tests.contract.location.models.google import log_in, login
from tests.contract.location.opened_location import LocationFolders
from tests.support.authorization_server import AuthorizationServer, authorization_server


class Desk:
    """A Google login whose tokens come from a server on this machine."""

    def __init__(self, folders: LocationFolders, server: AuthorizationServer) -> None:
        self.folders = folders
        self.server = server
        self.clock = ManualClock()
        self.transport = HttptoolsTransport()
        server.rotates = False
        self.log_in()
        self.google = self.opened(None)

    def opened(self, sign: Sign | None) -> GoogleLogin:
        return GoogleLogin(
            self.folders.environment, transport=self.transport, clock=self.clock, sign=sign
        )

    def log_in(self) -> None:
        refresh = self.server.tokens()["refresh_token"]
        url = f"{self.server.url}/token"
        log_in(self.folders, login(refresh_token=refresh, token_uri=url))

    async def failed(self) -> LLMError:
        with pytest.raises(LLMError) as raised:
            await self.google.get_access_token()
        assert not any(secret in str(raised.value) for secret in self.server.issued)
        assert "canary" not in str(raised.value)
        return raised.value


@pytest.fixture
async def desk(folders: LocationFolders) -> AsyncGenerator[Desk]:
    async with authorization_server() as server:
        opened = Desk(folders, server)
        yield opened
        await opened.transport.aclose()


async def test_a_token_serves_until_shortly_before_it_runs_out(desk: Desk) -> None:
    first = await desk.google.get_access_token()
    ahead = limits.LOGIN_RENEWED_AHEAD_SECONDS
    desk.clock.advance(3600 - ahead - 1)
    assert await desk.google.get_access_token() == first
    desk.clock.advance(1)
    assert await desk.google.get_access_token() != first
    assert desk.server.renewals == 2
    assert desk.server.asked[0]["client_secret"] == "canary-client-secret"


async def test_many_that_need_a_token_at_once_ask_for_one(desk: Desk) -> None:
    tokens = await asyncio.gather(*(desk.google.get_access_token() for _ in range(20)))
    assert len(set(tokens)) == 1
    assert desk.server.renewals == 1


async def test_whoever_waits_gets_a_token_although_the_first_gave_up(desk: Desk) -> None:
    desk.server.hold = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(desk.google.get_access_token())
        await desk.server.until_asked(1)
        second = group.create_task(desk.google.get_access_token())
        first.cancel()
        await asyncio.wait((first,))
        desk.server.hold.set()
    assert first.cancelled()
    assert second.result().startswith("canary-access")


async def test_a_new_login_counts_from_the_next_request_on(desk: Desk) -> None:
    before = await desk.google.get_access_token()
    desk.log_in()
    assert await desk.google.get_access_token() != before


async def test_a_server_that_is_down_does_not_spoil_a_token_with_time_left(desk: Desk) -> None:
    token = await desk.google.get_access_token()
    desk.server.status, desk.server.error = 503, "temporarily_unavailable"
    desk.clock.advance(3600 - limits.LOGIN_RENEWED_AHEAD_SECONDS)
    assert await desk.google.get_access_token() == token
    desk.clock.advance(limits.LOGIN_RENEWED_AHEAD_SECONDS)
    failure = await desk.failed()
    assert failure.reason == "transport"
    assert "temporarily_unavailable" in str(failure)
    assert desk.server.renewals == 3
    desk.server.status = 200
    assert await desk.google.get_access_token() != token


async def test_a_login_that_google_refuses_says_what_to_do(desk: Desk) -> None:
    desk.server.status = 400
    failure = await desk.failed()
    assert failure.reason == "authentication"
    assert "invalid_grant" in str(failure)
    assert "gcloud auth application-default login" in str(failure)


async def test_a_login_that_is_gone_is_said(desk: Desk) -> None:
    await desk.google.get_access_token()
    log_in(desk.folders, "").unlink()
    assert "no Google login" in str(await desk.failed())


# ---- service accounts -----------------------------------------------------------------------


def employ(desk: Desk) -> None:
    """The file of a service account."""
    account = login(
        type="service_account",
        client_email="robot@ours.example",
        private_key_id="key-1",
        private_key="canary-private-key",
        token_uri=f"{desk.server.url}/token",
    )
    log_in(desk.folders, account)


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_a_service_account_asks_with_a_statement_that_it_signed(desk: Desk) -> None:
    employ(desk)
    desk.server.status = 400
    google = desk.opened(lambda key, data: hashlib.sha256(key.encode() + data).digest())
    with pytest.raises(LLMError, match="invalid_grant"):
        await google.get_access_token()
    (asked,) = desk.server.asked
    assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    said, _, signature = asked["assertion"].rpartition(".")
    signed = hashlib.sha256(b"canary-private-key" + said.encode()).digest()
    assert unpadded(signature) == signed
    head, claims = (codec.decode_any(unpadded(part)) for part in said.split("."))
    assert head == {"alg": "RS256", "typ": "JWT", "kid": "key-1"}
    now = desk.clock.now_millis() // 1000
    assert (claims["iss"], claims["aud"]) == ("robot@ours.example", f"{desk.server.url}/token")
    assert (claims["iat"], claims["exp"]) == (now, now + 3600)


async def test_a_key_that_cannot_sign_is_a_clear_failure(desk: Desk) -> None:
    def sign(key: str, data: bytes) -> bytes:
        raise UnusableKeyError("the private key cannot be read")

    employ(desk)
    with pytest.raises(LLMError, match="private key cannot be read"):
        await desk.opened(sign).get_access_token()
    assert desk.server.asked == []


def test_without_a_way_to_sign_it_is_said_what_to_install(desk: Desk) -> None:
    employ(desk)
    found = desk.opened(None).load()
    assert isinstance(found, NoGoogleLogin)
    assert "`cryptography`" in found.reason
    assert "gcloud auth application-default login" in found.reason
