"""AWS logins that people have, against servers on this machine: roles, profiles, containers.

The package that finds them reads the environment of the process, so each test sets it.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core.credentials.keys import KeyMissing
from perdure.core.models.aws import AwsLogin
from perdure.host import environment
from perdure.host.http.client import HttptoolsTransport
from perdure.llm.aws.signature import AwsKeys
from perdure.llm.error import LLMError
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models import cloud_logins
from perdure.location.models.aws_login import AwsProfile
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.schema import codec
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.host.loopback import Loopback, Received, response, serving
from tests.contract.location.opened_location import LocationFolders

CLAUDE = ModelRef(id="anthropic.claude-opus-4-8", provider_id="bedrock")
EXPIRES = "2099-01-01T00:00:00Z"
KEYS = {
    "AccessKeyId": "AKIDROLE",
    "SecretAccessKey": "secret-role",
    "Token": "token-role",
    "Expiration": EXPIRES,
}
ASSUMED = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>AKIDASSUMED</AccessKeyId>
<SecretAccessKey>secret-assumed</SecretAccessKey><SessionToken>token-assumed</SessionToken>
<Expiration>{EXPIRES}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@asynccontextmanager
async def cloud(answers: Mapping[str, bytes]) -> AsyncGenerator[Loopback]:
    """A server that answers each path with its bytes, and all others with 404."""

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        body = answers.get(received.target.partition("?")[0])
        status = "404 Not Found" if body is None else "200 OK"
        writer.write(response(body or b"", status=status))
        await writer.drain()

    async with serving(answer) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    return tmp_path


def profile(home: Path, variables: Mapping[str, str]) -> AwsProfile:
    given = environment.from_variables({"HOME": str(home), "TMPDIR": str(home), **variables})
    found = AwsProfile(given)
    found.variables()
    return found


async def keys_of(home: Path, variables: Mapping[str, str]) -> AwsKeys:
    found = profile(home, variables)
    assert isinstance(found.login(), AwsLogin)
    async with asyncio.timeout(20):
        return await found.get_keys()


async def test_the_default_profile_is_a_login(home: Path) -> None:
    (home / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = secret\n"
    )
    assert await keys_of(home, {}) == AwsKeys("AKIDDEFAULT", "secret")


async def test_a_container_has_the_role_of_its_task(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cloud({"/task": codec.encode(KEYS)}) as server:
        name, url = "AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/task"
        monkeypatch.setenv(name, url)
        assert await keys_of(home, {name: url}) == AwsKeys("AKIDROLE", "secret-role", "token-role")


async def test_a_machine_has_the_role_of_its_instance(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = "/latest/meta-data/iam/security-credentials/"
    whole = {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": EXPIRES, **KEYS}
    answers = {
        "/latest/api/token": b"metadata-token",
        below: b"role",
        f"{below}role": codec.encode(whole),
    }
    async with cloud(answers) as server:
        name = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
        monkeypatch.setenv(name, server.url)
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        assert await keys_of(home, {name: server.url}) == AwsKeys(
            "AKIDROLE", "secret-role", "token-role"
        )


async def test_a_profile_assumes_its_role(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws/credentials").write_text(
        "[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = secret\n"
    )
    (home / ".aws/config").write_text(
        "[profile work]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
    )
    async with cloud({"/": ASSUMED.encode()}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        monkeypatch.setenv("AWS_PROFILE", "work")
        found = await keys_of(home, {"AWS_PROFILE": "work"})
    assert found == AwsKeys("AKIDASSUMED", "secret-assumed", "token-assumed")
    assert b"RoleArn=arn" in server.requests[0].body


async def test_a_login_that_has_ended_says_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".aws/config").write_text(
        "[profile sso]\nsso_session = me\nsso_account_id = 1\nsso_role_name = r\n"
        "[sso-session me]\nsso_region = eu-west-1\nsso_start_url = https://start.example\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "sso")
    with pytest.raises(LLMError, match="aws sso login") as failed:
        await keys_of(home, {"AWS_PROFILE": "sso"})
    assert failed.value.reason == "authentication"


def test_without_a_login_nothing_is_looked_for(home: Path) -> None:
    (home / ".aws/config").write_text("[default]\nregion = eu-west-1\noutput = json\n")
    found = profile(home, {})
    assert isinstance(found.login(), KeyMissing)


async def test_a_request_is_signed_with_the_keys_of_the_login(
    folders: LocationFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(folders.environment.home)
    (home / ".aws").mkdir()
    (home / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = secret\n"
    )
    (home / ".aws/config").write_text("[default]\nregion = eu-north-1\n")
    monkeypatch.setenv("HOME", str(home))
    api = {"type": "aisdk", "package": "@ai-sdk/amazon-bedrock"}
    folders.configure({"providers": {"bedrock": {"api": api, "models": {CLAUDE.id: {}}}}})
    clock = ManualClock()
    catalog = Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=clock,
        clouds=cloud_logins.make_cloud_logins(
            folders.environment, transport=HttptoolsTransport(), clock=clock
        ),
    )
    resolved = catalog.resolve(CLAUDE)
    assert isinstance(resolved, ResolvedModel)
    segments = split_segments((LLMMessage("user", (TextPart("hi"),)),))
    with pytest.raises(LLMError):
        async for _ in resolved.call(LLMRequest(model=CLAUDE, system=(), segments=segments)):
            pass
    (request,) = folders.transport.requests
    assert request.url.startswith("https://bedrock-runtime.eu-north-1.amazonaws.com/")
    assert "Credential=AKIDDEFAULT/" in request.headers["authorization"]
