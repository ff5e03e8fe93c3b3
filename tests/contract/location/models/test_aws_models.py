"""Models at AWS: which region is asked, with whose keys, and who never gets them."""

from pathlib import Path

import pytest

from perdure.llm.error import LLMError
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models import cloud_logins
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.location.models.failures import ModelUnavailable
from perdure.net.transport import HttpRequest
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders

CLAUDE = ModelRef(id="anthropic.claude-opus-4-8", provider_id="bedrock")
LENT = {
    "AWS_ACCESS_KEY_ID": "AKIDLENT",
    "AWS_SECRET_ACCESS_KEY": "secret-lent",
    "AWS_SESSION_TOKEN": "token-lent",
}
BEARER = {"AWS_BEARER_TOKEN_BEDROCK": "bearer-token"}
ELSEWHERE = "https://elsewhere.example"


def configured(
    *, url: str | None = None, env: list[str] | None = None, **settings: JsonValue
) -> JsonObject:
    api: JsonObject = {
        "type": "aisdk",
        "package": "@ai-sdk/amazon-bedrock",
        "settings": settings,
    }
    if url is not None:
        api["url"] = url
    entry: JsonObject = {"api": api, "models": {CLAUDE.id: {}}}
    if env is not None:
        entry["env"] = env
    return {"providers": {"bedrock": entry}}


def catalog_of(folders: LocationFolders) -> Catalog:
    clock = ManualClock()
    return Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=clock,
        clouds=cloud_logins.make_cloud_logins(
            folders.environment, transport=folders.transport, clock=clock
        ),
    )


async def request_of(folders: LocationFolders) -> HttpRequest:
    """The one request of a model call; its answer is not one of this protocol."""
    resolved = catalog_of(folders).resolve(CLAUDE)
    assert isinstance(resolved, ResolvedModel)
    asked = LLMRequest(
        model=CLAUDE, system=(), segments=split_segments((LLMMessage("user", (TextPart("hi"),)),))
    )
    with pytest.raises(LLMError):
        async for _ in resolved.call(asked):
            pass
    (request,) = folders.transport.requests
    return request


def refusal_of(folders: LocationFolders) -> str:
    resolved = catalog_of(folders).resolve(CLAUDE)
    assert isinstance(resolved, ModelUnavailable)
    assert CLAUDE.id not in {model.id for model in catalog_of(folders).models()}
    return resolved.reason


async def test_keys_of_the_environment_sign_for_the_region_of_the_environment(
    folders: LocationFolders,
) -> None:
    folders.variables |= LENT | {"AWS_REGION": "eu-central-1"}
    folders.configure(configured())
    request = await request_of(folders)
    assert request.url == (
        "https://bedrock-runtime.eu-central-1.amazonaws.com"
        "/model/anthropic.claude-opus-4-8/converse-stream"
    )
    assert "Credential=AKIDLENT/" in request.headers["authorization"]
    assert "/eu-central-1/bedrock/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "token-lent"


async def test_a_token_is_enough_and_goes_to_every_region(folders: LocationFolders) -> None:
    folders.variables |= LENT | BEARER | {"AWS_DEFAULT_REGION": "cn-north-1"}
    folders.configure(configured())
    request = await request_of(folders)
    assert request.url.startswith("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/")
    assert request.headers["authorization"] == "Bearer bearer-token"


async def test_settings_win_over_the_environment(folders: LocationFolders) -> None:
    folders.variables |= LENT | {"AWS_REGION": "eu-central-1"}
    folders.configure(
        configured(region="ap-southeast-2", accessKeyId="AKIDOWN", secretAccessKey="secret-own")
    )
    request = await request_of(folders)
    assert request.url.startswith("https://bedrock-runtime.ap-southeast-2.amazonaws.com/")
    assert "Credential=AKIDOWN/" in request.headers["authorization"]
    assert "x-amz-security-token" not in request.headers


async def test_the_region_may_stand_in_the_address(folders: LocationFolders) -> None:
    folders.variables |= LENT | {"AWS_REGION": "us-west-2"}
    folders.configure(configured(url="https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com"))
    request = await request_of(folders)
    assert "/us-gov-west-1/bedrock/" in request.headers["authorization"]


async def test_a_project_with_its_own_server_gets_none_of_the_users_keys(
    folders: LocationFolders,
) -> None:
    folders.variables |= LENT | BEARER
    folders.configure(configured(url=ELSEWHERE))
    request = await request_of(folders)
    assert request.headers.keys() & {"authorization", "x-amz-security-token"} == set()


def test_a_project_that_names_the_variables_gets_nothing_either(folders: LocationFolders) -> None:
    folders.variables |= LENT | BEARER | {"PERDURE_TRUSTED": ""}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"):
        folders.configure(configured(url=ELSEWHERE, env=[name]))
        assert "no provider" in refusal_of(folders)


async def test_the_users_own_configuration_may_send_them_elsewhere(
    folders: LocationFolders,
) -> None:
    folders.variables |= LENT
    folders.configure_user(configured(url=ELSEWHERE, env=["AWS_ACCESS_KEY_ID"]))
    request = await request_of(folders)
    assert request.url.startswith(ELSEWHERE)
    assert "Credential=AKIDLENT/" in request.headers["authorization"]


def test_without_keys_it_is_said_which_ones_are_missing(folders: LocationFolders) -> None:
    folders.variables |= {"AWS_ACCESS_KEY_ID": "AKIDHALF"}
    folders.configure(configured())
    reason = refusal_of(folders)
    assert "AWS_BEARER_TOKEN_BEDROCK" in reason
    assert "AWS_SECRET_ACCESS_KEY" in reason


@pytest.mark.parametrize(
    "region", ["evil.example/#", "eu-west-1.evil.example", "x", "EU-WEST-1", "eu-west-1\n"]
)
def test_a_region_that_is_none_reaches_no_address(folders: LocationFolders, region: str) -> None:
    folders.variables |= LENT | BEARER
    folders.configure(configured(region=region))
    assert "not the name of an AWS region" in refusal_of(folders)


def write_profile(folders: LocationFolders, token: str) -> Path:
    folder = Path(folders.environment.home) / ".aws"
    folder.mkdir(exist_ok=True)
    (folder / "config").write_text("[profile work]\nregion = eu-west-3\n")
    file = folder / "credentials"
    file.write_text(
        "[default]\naws_access_key_id=AKIDOTHER\naws_secret_access_key=other\n"
        "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = secret-work\n"
        f"aws_session_token = {token}\n"
    )
    return file


async def test_a_profile_lends_its_keys_and_region_as_they_are_when_a_model_is_asked(
    folders: LocationFolders,
) -> None:
    folders.variables |= {"AWS_PROFILE": "work"}
    folders.configure(configured())
    file = write_profile(folders, "token-1")
    catalog = catalog_of(folders)
    first = catalog.resolve(CLAUDE)
    request = await request_of(folders)
    assert request.url.startswith("https://bedrock-runtime.eu-west-3.amazonaws.com/")
    assert "Credential=AKIDWORK/" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "token-1"
    assert catalog.resolve(CLAUDE) is first
    write_profile(folders, "token-of-the-next-hour")
    assert isinstance(catalog.resolve(CLAUDE), ResolvedModel)
    assert catalog.resolve(CLAUDE) is not first
    file.unlink()
    assert isinstance(catalog.resolve(CLAUDE), ModelUnavailable)


def test_a_profile_that_is_not_there_lends_nothing(folders: LocationFolders) -> None:
    folders.variables |= {"AWS_PROFILE": "absent"}
    folders.configure(configured())
    write_profile(folders, "token")
    assert "AWS_ACCESS_KEY_ID" in refusal_of(folders)
