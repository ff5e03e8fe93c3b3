"""Google logins of companies and machines, against servers on this machine."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core.credentials import google
from perdure.core.credentials.google import MachineAccount, OtherLogin
from perdure.host.credentials.google_auth import AccessToken, Answer, GoogleAuthSource
from perdure.host.http.client import HttptoolsTransport
from perdure.llm.error import LLMError
from perdure.location.models.google_login import GoogleLogin
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.testing import ManualClock
from tests.contract.host.loopback import Loopback, Received, response, serving
from tests.contract.location.models.google import log_in, login
from tests.contract.location.opened_location import LocationFolders

FOREVER = "2099-01-01T00:00:00Z"
IMPERSONATE = "/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com:generateAccessToken"
METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"


@asynccontextmanager
async def cloud(answers: Mapping[str, JsonObject]) -> AsyncGenerator[Loopback]:
    """A server that answers each path with its JSON, and all others with 403."""

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        body = answers.get(received.target.partition("?")[0])
        status = "403 Forbidden" if body is None else "200 OK"
        writer.write(response(b"" if body is None else codec.encode(body), status=status))
        await writer.drain()

    async with serving(answer) as server:
        yield server


@asynccontextmanager
async def opened(folders: LocationFolders) -> AsyncGenerator[GoogleLogin]:
    transport = HttptoolsTransport()
    try:
        async with asyncio.timeout(20):
            yield GoogleLogin(
                folders.environment, transport=transport, clock=ManualClock(), sign=None
            )
    finally:
        await transport.aclose()


def federated(server: Loopback, subject: Path, **fields: object) -> JsonObject:
    subject.write_text("identity-of-the-pipeline")
    return {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{server.url}/v1/token",
        "credential_source": {"file": str(subject)},
        **fields,
    }


EXCHANGED: JsonObject = {
    "access_token": "token-of-the-pool",
    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "token_type": "Bearer",
    "expires_in": 3600,
}


async def test_a_federated_identity_is_exchanged_for_a_token(
    folders: LocationFolders, tmp_path: Path
) -> None:
    async with cloud({"/v1/token": EXCHANGED}) as server, opened(folders) as opened_login:
        log_in(folders, federated(server, tmp_path / "subject"))
        assert isinstance(opened_login.load(), OtherLogin)
        assert await opened_login.get_access_token() == "token-of-the-pool"
        assert await opened_login.get_access_token() == "token-of-the-pool"
    (request,) = server.requests
    assert b"identity-of-the-pipeline" in request.body


async def test_a_federated_identity_may_impersonate_an_account(
    folders: LocationFolders, tmp_path: Path
) -> None:
    answers: dict[str, JsonObject] = {
        "/v1/token": EXCHANGED,
        IMPERSONATE: {"accessToken": "token-of-the-account", "expireTime": FOREVER},
    }
    async with cloud(answers) as server, opened(folders) as opened_login:
        url = f"{server.url}{IMPERSONATE}"
        wanted = federated(server, tmp_path / "s", service_account_impersonation_url=url)
        log_in(folders, wanted)
        assert await opened_login.get_access_token() == "token-of-the-account"
    assert server.requests[1].headers["authorization"] == "Bearer token-of-the-pool"


def test_a_person_may_impersonate_an_account() -> None:
    asked: list[str] = []

    def send(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        asked.append(url)
        answer: JsonObject = {"access_token": "token-of-the-person", "expires_in": 3600}
        if "generateAccessToken" in url:
            assert headers["authorization"] == "Bearer token-of-the-person"
            answer = {"accessToken": "token-of-the-account", "expireTime": FOREVER}
        return Answer(200, {}, codec.encode(answer))

    content: JsonObject = {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": f"https://iamcredentials.googleapis.com{IMPERSONATE}",
        "source_credentials": login(),
    }
    token = GoogleAuthSource(send).get(codec.encode(content))
    assert token == AccessToken("token-of-the-account", 4_070_908_800_000)
    assert isinstance(google.read(codec.encode(content), path="file"), OtherLogin)
    assert asked == [
        "https://oauth2.googleapis.com/token",
        f"https://iamcredentials.googleapis.com{IMPERSONATE}",
    ]


async def test_a_machine_has_the_account_that_its_metadata_server_gives(
    folders: LocationFolders,
) -> None:
    given: JsonObject = {"access_token": "token-of-the-machine", "expires_in": 3600}
    async with cloud({METADATA: given}) as server:
        folders.variables["GCE_METADATA_HOST"] = f"127.0.0.1:{server.port}"
        async with opened(folders) as opened_login:
            assert isinstance(opened_login.load(), MachineAccount)
            assert await opened_login.get_access_token() == "token-of-the-machine"
    (request,) = server.requests
    assert request.headers["metadata-flavor"] == "Google"


async def test_a_refusal_is_told_without_what_was_sent(
    folders: LocationFolders, tmp_path: Path
) -> None:
    async with cloud({}) as server, opened(folders) as opened_login:
        log_in(folders, federated(server, tmp_path / "subject"))
        with pytest.raises(LLMError) as failed:
            await opened_login.get_access_token()
    assert "identity-of-the-pipeline" not in str(failed.value)
    assert failed.value.reason == "transport"


async def test_a_login_file_comes_before_the_account_of_the_machine(
    folders: LocationFolders, tmp_path: Path
) -> None:
    folders.variables["K_SERVICE"] = "service"
    async with cloud({"/v1/token": EXCHANGED}) as server, opened(folders) as opened_login:
        assert opened_login.load() == MachineAccount("metadata.google.internal")
        log_in(folders, federated(server, tmp_path / "subject"))
        assert isinstance(opened_login.load(), OtherLogin)
