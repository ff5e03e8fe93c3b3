"""Logging in with a browser: attempts, their ends, and everything that must not complete one."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.host.credentials.file import FileCredentials
from perdure.host.http.client import HttptoolsTransport
from perdure.location.models.credentials import Credentials
from perdure.location.registry import LocationRegistry
from perdure.runtime.locations.integrations import CODE_REQUIRED, Integrations, LoginServices
from perdure.runtime.tasks import Background
from perdure.schema.errors import AttemptNotFoundError, InvalidRequestError, ServiceUnavailableError
from perdure.schema.models.credential import StoredLogin
from perdure.schema.models.integration import (
    Attempt,
    AttemptComplete,
    AttemptExpired,
    AttemptFailed,
    AttemptPending,
)
from perdure.testing import ManualClock, SeededIds
from tests.contract.location.opened_location import LocationFolders
from tests.support.authorization_server import AuthorizationServer, authorization_server, browse

API = "https://api.example.org"
CODE_URL = "https://login.example.org/show-code"


class House:
    """Integrations over real files, a real socket and a clock that the test moves."""

    def __init__(self, root: Path, server: AuthorizationServer, background: Background) -> None:
        self.folders = LocationFolders(root)
        self.server = server
        self.clock = ManualClock()
        self.transport = HttptoolsTransport()
        self.changed: list[str] = []
        data = root / "data"
        data.mkdir()
        self.store = FileCredentials(str(data))

        def start(work: Coroutine[None, None, None]) -> None:
            background.start(work, name="login")

        self.credentials = Credentials(
            self.store,
            transport=self.transport,
            clock=self.clock,
            start=start,
            changed=self.changed.append,
        )
        host = replace(self.folders.host(), clock=self.clock, credentials=self.credentials)
        drawn = iter(range(1, 1_000))
        services = LoginServices(
            transport=self.transport,
            clock=self.clock,
            ids=SeededIds(),
            entropy=lambda size: next(drawn).to_bytes(size, "big"),
            start=start,
        )
        self.locations = LocationRegistry(host)
        self.integrations = Integrations(self.locations, self.credentials, services)

    def configure(self, **method: object) -> None:
        api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": f"{API}/v1"}
        code = self.server.method(redirect_url=CODE_URL)
        logins = {"browser": self.server.method(**method), "code": code}
        self.folders.configure_user(
            {
                "providers": {"fake": {"api": api, "models": {"one": {}}}},
                "experimental": {"logins": {"fake": logins}},
            }
        )

    async def begin(self, method: str = "browser", **inputs: str) -> Attempt:
        return await self.integrations.connect_oauth(
            self.folders.ref, "fake", method_id=method, inputs=inputs, label=None
        )

    @property
    def stored(self) -> StoredLogin | None:
        found = self.store.look().get("fake")
        assert found is None or isinstance(found, StoredLogin)
        return found


@asynccontextmanager
async def housed(root: Path) -> AsyncGenerator[House]:
    async with authorization_server() as server, Background() as background:
        opened = House(root, server, background)
        opened.configure()
        yield opened
        opened.integrations.close()
        await background.stop()
        await opened.transport.aclose()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with housed(tmp_path) as opened:
        yield opened


def is_listening(url: str) -> bool:
    return urlsplit(url).port is not None


def callback_of(attempt: Attempt) -> str:
    return dict(parse_qsl(urlsplit(attempt.url).query))["redirect_uri"]


async def refused(work: Coroutine[None, None, object], kind: str | None = None) -> str:
    with pytest.raises(InvalidRequestError) as raised:
        await work
    assert raised.value.kind == (kind or "integration_authorization")
    return raised.value.message


# ---- the good ways ------------------------------------------------------------------------------


async def test_a_browser_that_comes_back_completes_the_login_by_itself(house: House) -> None:
    attempt = await house.begin()
    assert attempt.mode == "auto"
    assert attempt.time.expires - attempt.time.created == limits.ATTEMPT_SECONDS_MAX * 1000
    status = await house.integrations.status(attempt.attempt_id)
    assert status == AttemptPending(attempt.time)
    _, back = house.server.grant(attempt.url)
    assert (await browse(back))[0] == 200
    status = await house.integrations.status(attempt.attempt_id)
    assert status == AttemptComplete(attempt.time)
    assert house.stored is not None
    assert house.stored.origins == (API,)
    assert house.stored.access == house.server.issued[-1]
    assert house.changed == ["fake"]


async def test_a_code_that_somebody_copies_completes_the_login(house: House) -> None:
    attempt = await house.begin("code")
    assert attempt.mode == "code"
    assert callback_of(attempt) == CODE_URL
    message = await refused(house.integrations.complete(attempt.attempt_id, None), CODE_REQUIRED)
    assert "code" in message
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptPending)
    code, _ = house.server.grant(attempt.url)
    await house.integrations.complete(attempt.attempt_id, code)
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptComplete)
    assert house.stored is not None


async def test_who_cannot_come_back_copies_the_address_instead(house: House) -> None:
    attempt = await house.begin()
    _, back = house.server.grant(attempt.url)
    await house.integrations.complete(attempt.attempt_id, back)
    assert house.stored is not None


async def test_a_fixed_port_is_listened_on_and_free_again_afterwards(house: House) -> None:
    free = await house.begin()
    port = urlsplit(callback_of(free)).port
    await house.integrations.cancel(free.attempt_id)
    house.configure(redirect_url=f"http://localhost:{port}/auth/callback")
    for _ in range(3):
        await house.begin()
    attempt = await house.begin()
    assert callback_of(attempt) == f"http://localhost:{port}/auth/callback"
    _, back = house.server.grant(attempt.url)
    assert (await browse(back))[0] == 200


# ---- what does not complete an attempt ----------------------------------------------------------


async def test_a_wrong_state_is_refused_and_the_right_one_still_works(house: House) -> None:
    attempt = await house.begin()
    code, back = house.server.grant(attempt.url)
    for state in ("", "wrong"):
        forged = f"{callback_of(attempt)}?{urlencode({'code': code, 'state': state})}"
        status, page = await browse(forged)
        assert status == 400
        assert code not in page
    assert "belong" in await refused(
        house.integrations.complete(attempt.attempt_id, f"{code}#wrong")
    )
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptPending)
    assert house.server.asked == []
    assert (await browse(back))[0] == 200


async def test_a_page_elsewhere_cannot_reach_the_listener_by_a_name_of_its_own(
    house: House,
) -> None:
    attempt = await house.begin()
    _, back = house.server.grant(attempt.url)
    port = urlsplit(back).port
    for host in ("evil.example.org", f"evil.example.org:{port}", f"127.0.0.1:{port}\r\nhost: a"):
        assert (await browse(back, host=host))[0] == 400
    assert (await browse(back, method="POST"))[0] == 405
    assert (await browse(back.replace("/callback", "/other")))[0] == 404
    assert house.server.asked == []


async def test_a_code_that_was_used_is_of_no_use_again(house: House) -> None:
    attempt = await house.begin("code")
    code, _ = house.server.grant(attempt.url)
    await house.integrations.complete(attempt.attempt_id, code)
    before = house.stored
    message = await refused(house.integrations.complete(attempt.attempt_id, code))
    assert "already" in message
    again = await house.begin("code")
    message = await refused(house.integrations.complete(again.attempt_id, code))
    assert "invalid_grant" in message
    assert code not in message
    assert isinstance(await house.integrations.status(again.attempt_id), AttemptFailed)
    assert house.stored == before


async def test_two_that_complete_at_once_exchange_the_code_once(house: House) -> None:
    attempt = await house.begin()
    house.server.hold = asyncio.Event()
    _, back = house.server.grant(attempt.url)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(browse(back))
        await house.server.until_asked(1)
        message = await refused(house.integrations.complete(attempt.attempt_id, back))
        house.server.hold.set()
    assert "already" in message
    assert first.result()[0] == 200
    assert len(house.server.asked) == 1


async def test_a_person_who_declines_ends_the_attempt(house: House) -> None:
    attempt = await house.begin()
    state = dict(parse_qsl(urlsplit(attempt.url).query))["state"]
    told = urlencode({"error": "access_denied", "state": state, "error_description": "<b>no</b>"})
    status, page = await browse(f"{callback_of(attempt)}?{told}")
    assert status == 400
    assert "<b>" not in page
    ended = await house.integrations.status(attempt.attempt_id)
    assert isinstance(ended, AttemptFailed)
    assert "access_denied" in ended.message


async def test_an_attempt_expires_and_is_forgotten_a_minute_later(house: House) -> None:
    attempt = await house.begin()
    _, back = house.server.grant(attempt.url)
    house.clock.advance(limits.ATTEMPT_SECONDS_MAX - 1)
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptPending)
    house.clock.advance(1)
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptExpired)
    assert "too long" in await refused(house.integrations.complete(attempt.attempt_id, back))
    with pytest.raises(ConnectionError):
        await browse(back)
    assert house.server.asked == []
    async with asyncio.timeout(5):
        while True:
            try:
                await house.integrations.status(attempt.attempt_id)
            except AttemptNotFoundError:
                return
            house.clock.advance(limits.ATTEMPT_SWEEP_SECONDS)
            await asyncio.sleep(0)


async def test_a_newer_attempt_takes_the_place_of_the_one_before(house: House) -> None:
    first = await house.begin()
    second = await house.begin("code")
    ended = await house.integrations.status(first.attempt_id)
    assert isinstance(ended, AttemptFailed)
    with pytest.raises(ConnectionError):
        await browse(callback_of(first))
    assert isinstance(await house.integrations.status(second.attempt_id), AttemptPending)


async def test_of_attempts_that_begin_together_one_is_left(house: House) -> None:
    begun = await asyncio.gather(*(house.begin() for _ in range(5)), return_exceptions=True)
    attempts = [each for each in begun if isinstance(each, Attempt)]
    status = [await house.integrations.status(each.attempt_id) for each in attempts]
    assert sum(isinstance(each, AttemptPending) for each in status) == 1


async def test_a_cancelled_attempt_is_gone_and_stores_nothing(house: House) -> None:
    attempt = await house.begin()
    house.server.hold = asyncio.Event()
    _, back = house.server.grant(attempt.url)
    async with asyncio.TaskGroup() as group:
        browser = group.create_task(browse(back))
        await house.server.until_asked(1)
        await house.integrations.cancel(attempt.attempt_id)
        house.server.hold.set()
    assert browser.result()[0] == 400
    assert house.stored is None
    with pytest.raises(AttemptNotFoundError):
        await house.integrations.status(attempt.attempt_id)
    await house.integrations.cancel(attempt.attempt_id)


async def test_a_provider_that_fails_fails_the_attempt_and_changes_nothing(house: House) -> None:
    for status, error in ((400, "invalid_grant"), (500, "server_error")):
        house.server.status, house.server.error = status, error
        attempt = await house.begin("code")
        code, _ = house.server.grant(attempt.url)
        message = await refused(house.integrations.complete(attempt.attempt_id, code))
        assert error in message
        assert code not in message
    assert house.stored is None
    assert house.changed == []


async def test_a_login_that_cannot_be_kept_says_which_file_and_why(house: House) -> None:
    Path(house.store.path).write_bytes(b'{"version":1,"credentials":[]}')
    Path(house.store.path).chmod(0o644)
    attempt = await house.begin("code")
    code, _ = house.server.grant(attempt.url)
    with pytest.raises(ServiceUnavailableError, match="chmod 600"):
        await house.integrations.complete(attempt.attempt_id, code)
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptFailed)


async def test_a_caller_who_goes_away_does_not_lose_the_tokens(house: House) -> None:
    attempt = await house.begin("code")
    house.server.hold = asyncio.Event()
    code, _ = house.server.grant(attempt.url)
    async with asyncio.TaskGroup() as group:
        caller = group.create_task(house.integrations.complete(attempt.attempt_id, code))
        await house.server.until_asked(1)
        caller.cancel()
        house.server.hold.set()
    assert caller.cancelled()
    assert house.stored is not None
    assert isinstance(await house.integrations.status(attempt.attempt_id), AttemptComplete)


async def test_unknown_methods_answers_and_too_many_attempts_are_refused(house: House) -> None:
    assert "no login" in await refused(house.begin("nope"))
    assert "was asked" in await refused(house.begin("browser", region="eu"))
    with pytest.raises(AttemptNotFoundError):
        await house.integrations.complete("att_nope", "c")


async def test_a_port_that_is_taken_is_said_to_be(house: House) -> None:
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        house.configure(redirect_url=f"http://127.0.0.1:{port}/callback")
        message = await refused(house.begin())
    assert str(port) in message
    assert is_listening(callback_of(await house.begin("code"))) is False


async def test_rude_visitors_do_not_disturb_the_listener(house: House) -> None:
    attempt = await house.begin()
    port = urlsplit(callback_of(attempt)).port
    for data in (
        b"",
        b"\x00" * 100,
        b"GET /callback\r\n\r\n",
        b"A" * 100_000,
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(5):
            await asyncio.gather(reader.read(), return_exceptions=True)
        writer.close()
    _, back = house.server.grant(attempt.url)
    assert (await browse(back))[0] == 200


async def test_a_project_cannot_say_how_one_logs_in(house: House) -> None:
    theirs = {**house.server.method(), "token_url": "https://evil.example.net/token"}
    house.folders.configure({"experimental": {"logins": {"fake": {"browser": theirs}}}})
    location = await house.locations.get(house.folders.ref)
    assert location.integrations.method("fake", "browser").token_url == f"{house.server.url}/token"
    assert any("logins" in problem.message for problem in location.settings.problems)
