"""Which secret reaches a provider: stored, configured, of the environment, in this order."""

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.credentials import keys
from perdure.core.credentials.keys import (
    Key,
    KeyLookup,
    KeyMissing,
    Login,
    NoKeyNeeded,
    StoreUnreadable,
)
from perdure.schema.models.credential import StoredKey, StoredLogin

HOME = "https://api.example.org"
URL = f"{HOME}/v1"
ELSEWHERE = "https://evil.example.net/v1"
CANARY = "sk-canary-77aa"
STORED = StoredKey(
    id="cred_1",
    integration_id="fake",
    label="mine",
    origins=(HOME,),
    time_created=1,
    key=CANARY,
)
LOGIN = StoredLogin(
    id="cred_2",
    integration_id="fake",
    label="mine",
    origins=(HOME,),
    time_created=1,
    token_url="https://login.example.org/token",
    client_id="perdure",
    access=CANARY,
)


def found(
    *,
    stored: keys.Stored = None,
    url: str = URL,
    api_key: str | None = None,
    names: tuple[str, ...] = ("FAKE_KEY",),
    optional: bool = False,
) -> KeyLookup:
    return keys.find_key(
        api_key=api_key,
        api_settings={},
        names=names,
        url=url,
        variables={"FAKE_KEY": "env-key"},
        origins={"FAKE_KEY": frozenset({HOME})},
        stored=stored,
        optional=optional,
    )


def test_a_stored_credential_beats_a_configured_key_and_both_beat_the_environment() -> None:
    assert found(stored=STORED, api_key="configured") == Key(CANARY)
    assert found(stored=LOGIN, api_key="configured") == Login(LOGIN)
    assert found(api_key="configured") == Key("configured")
    assert found() == Key("env-key")
    assert found(names=()) == NoKeyNeeded()


def test_a_stored_key_goes_to_no_address_but_its_own_and_the_reason_is_told() -> None:
    for stored in (STORED, LOGIN):
        for names in (("FAKE_KEY",), ()):
            lookup = found(stored=stored, url=ELSEWHERE, names=names)
            assert isinstance(lookup, KeyMissing)
            assert HOME in lookup.reason
            assert "evil.example.net" in lookup.reason
            assert CANARY not in lookup.reason
    assert found(stored=STORED, url=ELSEWHERE, api_key="theirs") == Key("theirs")


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/v1",
        "https://api.example.org:8443/v1",
        "https://api.example.org.evil.net/v1",
        "https://api.example.org@evil.net/v1",
        "https://evil.net/https://api.example.org",
        "https://api.example.org%2eevil.net/",
        "",
        "file:///etc/passwd",
    ],
)
def test_an_address_that_only_looks_like_the_own_one_gets_nothing(url: str) -> None:
    assert isinstance(found(stored=STORED, url=url, names=()), KeyMissing)


@pytest.mark.parametrize(
    "url",
    ["https://API.example.org/v2", "https://api.example.org:443", "https://u:p@api.example.org/"],
)
def test_another_spelling_of_the_own_address_is_the_own_one(url: str) -> None:
    assert found(stored=STORED, url=url) == Key(CANARY)


def test_a_login_that_was_lost_says_so_and_what_to_do() -> None:
    lost = replace(LOGIN, lost="gone")
    lookup = found(stored=lost, names=())
    assert isinstance(lookup, KeyMissing)
    assert "log in again" in lookup.reason


def test_an_unreadable_store_stops_only_what_needs_it() -> None:
    broken = StoreUnreadable("/data/credentials.json is damaged")
    assert found(stored=broken, api_key="configured") == Key("configured")
    assert found(stored=broken) == Key("env-key")
    assert found(stored=broken, names=()) == NoKeyNeeded()
    assert found(stored=broken, names=("OTHER",), optional=True) == NoKeyNeeded()
    lookup = found(stored=broken, names=("OTHER",))
    assert lookup == KeyMissing("/data/credentials.json is damaged")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a b",
        "a\nb",
        "a\r\nx-evil: 1",
        "a\x00",
        "\x1b[2J",
        "ключ",
        "x" * (limits.CREDENTIAL_CHARS_MAX + 1),
        "x" * 1024 * 1024,
    ],
)
def test_what_cannot_be_a_key_is_refused_without_being_quoted(text: str) -> None:
    fault = keys.key_fault(text)
    assert fault is not None
    assert not text.strip() or text not in fault


def test_what_can_be_a_key_is_accepted() -> None:
    assert keys.key_fault("sk-proj_A.b~9/+=") is None
    assert keys.key_fault("x" * limits.CREDENTIAL_CHARS_MAX) is None
