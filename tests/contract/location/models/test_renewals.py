"""Logins in use: renewed in time, once for all processes, and lost only for all to see."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.credentials import keys
from perdure.core.credentials.keys import KeyMissing
from perdure.host.credentials.file import FileCredentials
from perdure.host.http.client import HttptoolsTransport
from perdure.llm.error import LLMError
from perdure.location.models.credentials import Credentials
from perdure.ports import CredentialStoreError
from perdure.runtime.tasks import Background
from perdure.schema.models.credential import StoredCredential, StoredLogin
from perdure.testing import ManualClock
from tests import fixtures
from tests.contract.host import stored
from tests.support.authorization_server import AuthorizationServer, authorization_server

CHILD = "tests.contract.location.models.renewing_process"


class FillingDisk(FileCredentials):
    full = False

    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        if self.full:
            raise CredentialStoreError(f"Cannot write {self.path}: No space left on device.")
        return super().put(credential, instead_of=instead_of)


class House:
    def __init__(self, root: Path, server: AuthorizationServer, background: Background) -> None:
        self.root = root
        self.server = server
        self.clock = ManualClock()
        self.store = FillingDisk(str(root))
        self.transport = HttptoolsTransport()
        self.changed: list[str] = []
        self.started = 0
        self._background = background
        self.credentials = Credentials(
            self.store,
            transport=self.transport,
            clock=self.clock,
            start=self._start,
            changed=self.changed.append,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self.started += 1
        self._background.start(work, name="renewal")

    def log_in(self, *, seconds: float | None = 3600) -> StoredLogin:
        """A login whose token has so many seconds left before it is due."""
        tokens = self.server.tokens()
        now = self.clock.now_millis()
        due = UNSET if seconds is None else now + int(seconds * 1000)
        ahead = limits.LOGIN_RENEWED_AHEAD_SECONDS * 1000
        login = replace(
            stored.login(),
            token_url=f"{self.server.url}/token",
            access=tokens["access_token"],
            refresh=tokens["refresh_token"],
            due=due,
            expires=UNSET if due is UNSET else due + ahead,
        )
        self.store.put(login, instead_of=None)
        return login

    @property
    def login(self) -> StoredLogin:
        found = FileCredentials(str(self.root)).look()["fake"]
        assert isinstance(found, StoredLogin)
        return found


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with authorization_server() as server, Background() as background:
        opened = House(tmp_path, server, background)
        yield opened
        await background.stop()
        await opened.transport.aclose()


async def failed(house: House) -> LLMError:
    with pytest.raises(LLMError) as raised:
        await house.credentials.get_access_token("fake")
    assert not any(secret in str(raised.value) for secret in house.server.issued)
    return raised.value


async def test_a_token_with_time_left_is_used_as_it_is(house: House) -> None:
    login = house.log_in()
    assert await house.credentials.get_access_token("fake") == login.access
    assert house.server.asked == []


async def test_a_token_that_is_due_is_renewed_before_it_is_used(house: House) -> None:
    login = house.log_in(seconds=0)
    token = await house.credentials.get_access_token("fake")
    assert token != login.access
    assert house.login.access == token
    assert house.login.id == login.id
    assert house.changed == []


async def test_many_that_need_a_token_at_once_renew_it_once(house: House) -> None:
    house.log_in(seconds=-1000)
    tokens = await asyncio.gather(*(house.credentials.get_access_token("fake") for _ in range(20)))
    assert len(set(tokens)) == 1
    assert house.server.renewals == 1


async def test_from_its_first_use_on_a_login_is_renewed_before_anybody_waits(house: House) -> None:
    house.log_in(seconds=100)
    await house.credentials.get_access_token("fake")
    async with asyncio.timeout(5):
        await house.clock.until_sleeps(1)
        house.clock.advance(100)
        await house.server.until_asked(1)
        await house.clock.until_sleeps(2)
    assert await house.credentials.get_access_token("fake") == house.login.access
    assert house.server.renewals == 1
    assert house.clock.sleeps[1] == house.server.expires_in - limits.LOGIN_RENEWED_AHEAD_SECONDS


async def test_an_interrupted_turn_does_not_interrupt_the_renewal(house: House) -> None:
    before = house.log_in(seconds=0)
    house.server.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(house.credentials.get_access_token("fake"))
        await house.server.until_asked(1)
        turn.cancel()
    house.server.hold.set()
    token = await house.credentials.get_access_token("fake")
    assert token != before.access
    assert house.login.access == token
    assert house.server.renewals == 1


async def test_a_provider_that_is_away_leaves_a_token_that_still_works_in_use(house: House) -> None:
    login = house.log_in(seconds=0)
    house.server.status, house.server.error = 503, "server_error"
    assert await house.credentials.get_access_token("fake") == login.access
    assert house.login == login
    house.clock.advance(limits.LOGIN_RENEWED_AHEAD_SECONDS)
    error = await failed(house)
    assert error.reason == "transport"
    assert "503" in error.message
    house.server.status = 200
    assert await house.credentials.get_access_token("fake") == house.login.access


async def test_a_refused_renewal_is_a_missing_key_that_says_to_log_in_again(house: House) -> None:
    house.log_in(seconds=0)
    house.credentials.stored()
    house.server.valid.clear()
    assert (await failed(house)).reason == "authentication"
    lookup = keys.find_key(
        api_key=None,
        api_settings={},
        names=(),
        url=stored.HOME,
        variables={},
        origins={},
        stored=house.login,
    )
    assert isinstance(lookup, KeyMissing)
    assert "invalid_grant" in lookup.reason
    assert "log in again" in lookup.reason
    assert house.changed == ["fake"]
    await failed(house)
    assert house.server.renewals == 1


async def test_a_login_without_anything_to_renew_it_with_runs_out_for_all_to_see(
    house: House,
) -> None:
    login = replace(house.log_in(seconds=0), refresh=UNSET)
    house.store.put(login, instead_of=None)
    assert await house.credentials.get_access_token("fake") == login.access
    house.clock.advance(limits.LOGIN_RENEWED_AHEAD_SECONDS)
    assert "has expired" in (await failed(house)).message
    assert house.login.lost is not UNSET
    assert house.server.asked == []


async def test_a_login_that_was_removed_meanwhile_stays_removed(house: House) -> None:
    login = house.log_in(seconds=0)
    house.server.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(failed(house))
        await house.server.until_asked(1)
        await house.credentials.remove(login.id)
        house.server.hold.set()
    assert turn.result().reason == "authentication"
    assert house.store.look() == {}


async def test_tokens_that_a_full_disk_does_not_take_are_used_and_stored_later(
    house: House,
) -> None:
    before = house.log_in(seconds=0)
    house.store.full = True
    token = await house.credentials.get_access_token("fake")
    assert token != before.access
    assert house.login == before
    assert await house.credentials.get_access_token("fake") == token
    house.store.full = False
    house.clock.advance(house.server.expires_in)
    newer = await house.credentials.get_access_token("fake")
    assert house.login.access == newer
    assert house.server.renewals == 2


async def test_a_login_of_another_process_is_heard_of_at_the_next_look(house: House) -> None:
    house.credentials.stored()
    FileCredentials(str(house.root)).put(stored.key("theirs"), instead_of=None)
    assert house.credentials.stored() == {"theirs": stored.key("theirs")}
    assert house.changed == ["theirs"]
    house.credentials.stored()
    assert house.changed == ["theirs"]


async def test_a_renamed_credential_keeps_its_secret(house: House) -> None:
    await house.credentials.put(stored.key("one"))
    assert await house.credentials.relabel("cred_one", "work")
    assert house.store.look()["one"] == replace(stored.key("one"), label="work")
    assert not await house.credentials.relabel("cred_nope", "work")
    assert house.changed == ["one", "one"]


# ---- other processes ----------------------------------------------------------------------------


async def spoken(child: asyncio.subprocess.Process) -> str:
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    return await fixtures.line(child)


async def ready(house: House, fate: str = "lives") -> asyncio.subprocess.Process:
    child = await fixtures.child(CHILD, str(house.root), fate)
    assert await fixtures.line(child) == "ready"
    return child


@pytest.fixture
def real_time(house: House) -> None:
    """What the other processes do not share is the clock: a token that is due for everyone."""
    house.clock.set_millis(0)


@pytest.mark.usefixtures("real_time")
async def test_processes_that_need_a_token_at_once_renew_it_once(house: House) -> None:
    before = house.log_in(seconds=0)
    house.server.hold = asyncio.Event()
    children = [await ready(house) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        said = [group.create_task(spoken(child)) for child in children]
        await house.server.until_asked(1)
        house.server.hold.set()
    tokens = {each.result() for each in said}
    assert tokens == {house.login.access}
    assert before.access not in tokens
    assert house.server.renewals == 1
    assert [await fixtures.end(child) for child in children] == [0, 0]


@pytest.mark.parametrize("rotates", [True, False])
@pytest.mark.usefixtures("real_time")
async def test_a_process_that_dies_before_it_could_store_a_token_leaves_what_was_stored(
    house: House, *, rotates: bool
) -> None:
    house.server.rotates = rotates
    before = house.log_in(seconds=0)
    dying = await ready(house, "dies")
    assert await spoken(dying) == ""
    assert await dying.wait() == -signal.SIGKILL
    assert house.login == before
    child = await ready(house)
    said = await spoken(child)
    if rotates:
        # The new token died with the process; the old one is spent, and the user is told.
        assert said.startswith("authentication: The login was lost")
        assert house.login.lost is not UNSET
    else:
        assert said == house.login.access
    assert await fixtures.end(child) == 0
