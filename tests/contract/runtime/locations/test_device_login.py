"""Logins by device code: a code for the person, and questions until the person has finished."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.schema.errors import InvalidRequestError
from perdure.schema.models.integration import (
    Attempt,
    AttemptComplete,
    AttemptExpired,
    AttemptFailed,
    AttemptPending,
)
from tests.contract.runtime.locations.test_integrations import House, housed
from tests.support.authorization_server import CLIENT

PATIENCE_SECONDS = 10


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with housed(tmp_path) as opened:
        opened.folders.configure_user(
            {
                "providers": {"fake": {"api": {"url": "https://api.test/v1"}, "models": {"m": {}}}},
                "experimental": {"logins": {"fake": {"device": opened.server.device_method()}}},
            }
        )
        yield opened


async def begun(house: House) -> Attempt:
    attempt = await house.begin("device")
    await until_waiting(house)
    return attempt


async def until_waiting(house: House, seconds: float = 5) -> None:
    """Wait until the next question is due in so many seconds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while seconds not in house.clock.sleeps:
            await house.clock.until_sleeps(len(house.clock.sleeps) + 1)
    house.clock.sleeps.clear()


async def ask_again(house: House, seconds: float = 5, *, then: float = 5) -> None:
    house.clock.advance(seconds)
    await until_waiting(house, then)


def answer(house: House, error: str | None) -> None:
    for code in house.server.device_codes:
        house.server.device_codes[code] = error


async def ended(house: House, attempt: Attempt) -> object:
    """The status of an attempt once it is over."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for status in statuses(house, attempt):
            if not isinstance(status, AttemptPending):
                return status
    raise AssertionError("unreachable")


async def statuses(house: House, attempt: Attempt) -> AsyncGenerator[object]:
    while True:
        yield await house.integrations.status(attempt.attempt_id)
        # The answers of the server come through sockets: other tasks go on meanwhile.
        await asyncio.sleep(0)


async def test_a_person_enters_the_code_and_the_login_is_stored(house: House) -> None:
    attempt = await begun(house)
    assert attempt.url == f"{house.server.url}/activate"
    assert "WDJB-MJHT" in attempt.instructions
    assert attempt.mode == "auto"
    assert house.server.asked == [{"client_id": CLIENT, "scope": "models"}]
    await ask_again(house)
    answer(house, None)
    house.clock.advance(5)
    assert isinstance(await ended(house, attempt), AttemptComplete)
    assert house.stored is not None
    assert house.stored.access in house.server.issued
    assert house.stored.token_url == f"{house.server.url}/token"


@pytest.mark.parametrize("status_200", [True, False])
async def test_a_server_that_is_asked_too_often_is_asked_less_often(
    house: House, status_200: bool
) -> None:
    house.server.refuses_with_200 = status_200
    attempt = await begun(house)
    answer(house, "slow_down")
    await ask_again(house, then=10)
    await ask_again(house, 10, then=15)
    answer(house, None)
    house.clock.advance(15)
    assert isinstance(await ended(house, attempt), AttemptComplete)


@pytest.mark.parametrize("error", ["access_denied", "expired_token", "invalid_grant"])
async def test_a_refusal_ends_the_login_and_tells_no_secret(house: House, error: str) -> None:
    attempt = await begun(house)
    answer(house, error)
    house.clock.advance(5)
    status = await ended(house, attempt)
    assert isinstance(status, AttemptFailed)
    assert error in status.message
    assert "canary" not in status.message
    assert house.stored is None


async def test_a_server_that_fails_for_a_moment_is_asked_again(house: House) -> None:
    attempt = await begun(house)
    house.server.status = 503
    house.server.error = "down"
    await ask_again(house)
    house.server.status = 200
    answer(house, None)
    house.clock.advance(5)
    assert isinstance(await ended(house, attempt), AttemptComplete)


async def test_a_code_that_nobody_enters_expires(house: House) -> None:
    attempt = await begun(house)
    house.clock.advance(301)
    assert isinstance(await ended(house, attempt), AttemptExpired)
    asked = len(house.server.asked)
    house.clock.advance(60)
    assert len(house.server.asked) == asked


async def test_a_cancelled_login_is_not_completed_later(house: House) -> None:
    attempt = await begun(house)
    answer(house, None)
    await house.integrations.cancel(attempt.attempt_id)
    house.clock.advance(5)
    for _ in range(20):
        await asyncio.sleep(0)
    assert house.stored is None


async def test_it_takes_no_pasted_code(house: House) -> None:
    attempt = await begun(house)
    with pytest.raises(InvalidRequestError, match="needs no code"):
        await house.integrations.complete(attempt.attempt_id, "WDJB-MJHT")
