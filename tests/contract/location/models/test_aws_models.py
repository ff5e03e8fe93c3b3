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
from tests.contract.location.opened_location import Place

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


def catalog_of(place: Place) -> Catalog:
    clock = ManualClock()
    return Catalog(
        place.settings(),
        variables=place.variables,
        transport=place.transport,
        clock=clock,
        clouds=cloud_logins.make_cloud_logins(
            place.environment, transport=place.transport, clock=clock
        ),
    )


async def request_of(place: Place) -> HttpRequest:
    """The one request of a model call; its answer is not one of this protocol."""
    resolved = catalog_of(place).resolve(CLAUDE)
    assert isinstance(resolved, ResolvedModel)
    asked = LLMRequest(
        model=CLAUDE, system=(), runs=split_segments((LLMMessage("user", (TextPart("hi"),)),))
    )
    with pytest.raises(LLMError):
        async for _ in resolved.call(asked):
            pass
    (request,) = place.transport.requests
    return request


def refusal_of(place: Place) -> str:
    resolved = catalog_of(place).resolve(CLAUDE)
    assert isinstance(resolved, ModelUnavailable)
    assert CLAUDE.id not in {model.id for model in catalog_of(place).models()}
    return resolved.reason


async def test_keys_of_the_environment_sign_for_the_region_of_the_environment(
    place: Place,
) -> None:
    place.variables |= LENT | {"AWS_REGION": "eu-central-1"}
    place.configure(configured())
    request = await request_of(place)
    assert request.url == (
        "https://bedrock-runtime.eu-central-1.amazonaws.com"
        "/model/anthropic.claude-opus-4-8/converse-stream"
    )
    assert "Credential=AKIDLENT/" in request.headers["authorization"]
    assert "/eu-central-1/bedrock/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "token-lent"


async def test_a_token_is_enough_and_goes_to_every_region(place: Place) -> None:
    place.variables |= LENT | BEARER | {"AWS_DEFAULT_REGION": "cn-north-1"}
    place.configure(configured())
    request = await request_of(place)
    assert request.url.startswith("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/")
    assert request.headers["authorization"] == "Bearer bearer-token"


async def test_settings_win_over_the_environment(place: Place) -> None:
    place.variables |= LENT | {"AWS_REGION": "eu-central-1"}
    place.configure(
        configured(region="ap-southeast-2", accessKeyId="AKIDOWN", secretAccessKey="secret-own")
    )
    request = await request_of(place)
    assert request.url.startswith("https://bedrock-runtime.ap-southeast-2.amazonaws.com/")
    assert "Credential=AKIDOWN/" in request.headers["authorization"]
    assert "x-amz-security-token" not in request.headers


async def test_the_region_may_stand_in_the_address(place: Place) -> None:
    place.variables |= LENT | {"AWS_REGION": "us-west-2"}
    place.configure(configured(url="https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com"))
    request = await request_of(place)
    assert "/us-gov-west-1/bedrock/" in request.headers["authorization"]


async def test_a_project_with_its_own_server_gets_none_of_the_users_keys(place: Place) -> None:
    place.variables |= LENT | BEARER
    place.configure(configured(url=ELSEWHERE))
    request = await request_of(place)
    assert request.headers.keys() & {"authorization", "x-amz-security-token"} == set()


async def test_a_project_that_names_the_variables_gets_nothing_either(place: Place) -> None:
    place.variables |= LENT | BEARER
    place.configure(configured(url=ELSEWHERE, env=["AWS_ACCESS_KEY_ID"]))
    request = await request_of(place)
    assert request.headers.keys() & {"authorization", "x-amz-security-token"} == set()
    place.configure(configured(url=ELSEWHERE, env=["AWS_BEARER_TOKEN_BEDROCK"]))
    assert "only your own configuration" in refusal_of(place)


async def test_the_users_own_configuration_may_send_them_elsewhere(place: Place) -> None:
    place.variables |= LENT
    place.configure_user(configured(url=ELSEWHERE, env=["AWS_ACCESS_KEY_ID"]))
    request = await request_of(place)
    assert request.url.startswith(ELSEWHERE)
    assert "Credential=AKIDLENT/" in request.headers["authorization"]


def test_without_keys_it_is_said_which_ones_are_missing(place: Place) -> None:
    place.variables |= {"AWS_ACCESS_KEY_ID": "AKIDHALF"}
    place.configure(configured())
    reason = refusal_of(place)
    assert "AWS_BEARER_TOKEN_BEDROCK" in reason
    assert "AWS_SECRET_ACCESS_KEY" in reason


@pytest.mark.parametrize(
    "region", ["evil.example/#", "eu-west-1.evil.example", "x", "EU-WEST-1", "eu-west-1\n"]
)
def test_a_region_that_is_none_reaches_no_address(place: Place, region: str) -> None:
    place.variables |= LENT | BEARER
    place.configure(configured(region=region))
    assert "not the name of an AWS region" in refusal_of(place)


def write_profile(place: Place, token: str) -> Path:
    folder = Path(place.environment.home) / ".aws"
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
    place: Place,
) -> None:
    place.variables |= {"AWS_PROFILE": "work"}
    place.configure(configured())
    file = write_profile(place, "token-1")
    catalog = catalog_of(place)
    first = catalog.resolve(CLAUDE)
    request = await request_of(place)
    assert request.url.startswith("https://bedrock-runtime.eu-west-3.amazonaws.com/")
    assert "Credential=AKIDWORK/" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "token-1"
    assert catalog.resolve(CLAUDE) is first
    write_profile(place, "token-of-the-next-hour")
    assert isinstance(catalog.resolve(CLAUDE), ResolvedModel)
    assert catalog.resolve(CLAUDE) is not first
    file.unlink()
    assert isinstance(catalog.resolve(CLAUDE), ModelUnavailable)


@pytest.mark.parametrize("name", ["", "absent"])
def test_profiles_that_nobody_named_lend_nothing(place: Place, name: str) -> None:
    place.variables |= {"AWS_PROFILE": name}
    place.configure(configured())
    write_profile(place, "token")
    assert "AWS_ACCESS_KEY_ID" in refusal_of(place)
