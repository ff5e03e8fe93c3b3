"""Models at Vertex AI: where they are asked, with whose token, and who never gets it."""

import pytest

from perdure.core import limits
from perdure.llm.error import LLMError
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.request import LLMRequest
from perdure.location.models import cloud_logins
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.failures import ModelUnavailable
from perdure.location.models.integrations import Integrations
from perdure.net.transport import HttpRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.models.google import log_in, login
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement

GEMINI = ModelRef(id="gemini-3-test", provider_id="vertex")
CLAUDE = ModelRef(id="claude-opus-4-8@default", provider_id="vertex")
TOKEN: JsonObject = {"body": {"apiKey": "ya29.own"}}
ELSEWHERE = "https://elsewhere.example/v1"
FILE = "GOOGLE_APPLICATION_CREDENTIALS"


def configured(
    *,
    url: str | None = None,
    env: list[str] | None = None,
    request: JsonObject | None = None,
    package: str = "@ai-sdk/google-vertex",
    **settings: JsonValue,
) -> JsonObject:
    api: JsonObject = {"type": "aisdk", "package": package, "settings": settings}
    if url is not None:
        api["url"] = url
    entry: JsonObject = {"api": api, "models": {GEMINI.id: {}, CLAUDE.id: {}}}
    if env is not None:
        entry["env"] = env
    if request is not None:
        entry["request"] = request
    return {"providers": {"vertex": entry}}


def catalog_of(folders: LocationFolders, *, known: bool = False) -> Catalog:
    clock = ManualClock()
    snapshot = ModelFactsCache(
        str(folders.root / "models.json.gz"),
        variables=folders.variables,
        clock=clock,
        start=folders.background.append,
    )
    return Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=clock,
        snapshot=snapshot if known else None,
        clouds=cloud_logins.make_cloud_logins(
            folders.environment, transport=folders.transport, clock=clock
        ),
    )


async def requests_of(folders: LocationFolders, ref: ModelRef = GEMINI) -> list[HttpRequest]:
    """What a model call sends; nothing that answers here speaks its protocol."""
    resolved = catalog_of(folders).resolve(ref)
    assert isinstance(resolved, ResolvedModel)
    asked = LLMRequest(
        model=ref, system=(), segments=split_segments((LLMMessage("user", (TextPart("hi"),)),))
    )
    with pytest.raises(LLMError):
        async for _ in resolved.call(asked):
            pass
    return folders.transport.requests


def refusal_of(folders: LocationFolders) -> str:
    resolved = catalog_of(folders).resolve(GEMINI)
    assert isinstance(resolved, ModelUnavailable)
    assert GEMINI.id not in {model.id for model in catalog_of(folders).models()}
    return resolved.reason


# ---- where ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "settings", "begins"),
    [
        (
            {"GOOGLE_VERTEX_PROJECT": "ours", "GOOGLE_CLOUD_PROJECT": "other"},
            {},
            "https://us-central1-aiplatform.googleapis.com/v1/projects/ours/locations/us-central1",
        ),
        (
            {"GCP_PROJECT": "ours", "GOOGLE_CLOUD_LOCATION": "europe-west4"},
            {},
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/ours/locations/europe-west4",
        ),
        (
            {"GOOGLE_CLOUD_PROJECT": "other", "GOOGLE_VERTEX_LOCATION": "us-east5"},
            {"project": "example.com:ours", "location": "global"},
            "https://aiplatform.googleapis.com/v1/projects/example.com:ours/locations/global",
        ),
    ],
)
async def test_project_and_location_make_the_address(
    folders: LocationFolders, variables: dict[str, str], settings: JsonObject, begins: str
) -> None:
    folders.variables |= variables
    folders.configure(configured(request=TOKEN, **settings))
    (request,) = await requests_of(folders)
    ends = "/publishers/google/models/gemini-3-test:streamGenerateContent?alt=sse"
    assert request.url == begins + ends
    assert request.headers["authorization"] == "Bearer ya29.own"


async def test_claude_is_named_in_the_address_and_not_in_the_body(folders: LocationFolders) -> None:
    package = "@ai-sdk/google-vertex/anthropic"
    folders.configure(
        configured(request=TOKEN, package=package, project="ours", location="us-east5")
    )
    (request,) = await requests_of(folders, CLAUDE)
    assert request.url == (
        "https://us-east5-aiplatform.googleapis.com/v1/projects/ours/locations/us-east5"
        "/publishers/anthropic/models/claude-opus-4-8@default:streamRawPredict"
    )
    assert request.headers["authorization"] == "Bearer ya29.own"
    body = codec.decode_any(b"".join(request.body))
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert body["stream"] is True
    assert "model" not in body


@pytest.mark.parametrize(
    "settings",
    [
        {"project": "evil/../x"},
        {"project": "p?x=1"},
        {"project": "ours\n"},
        {"project": "ours", "location": "evil.example/#"},
        {"project": "ours", "location": "us-central1.evil.example"},
        {"project": "ours", "location": "US-CENTRAL1"},
    ],
)
def test_what_is_no_name_reaches_no_address(folders: LocationFolders, settings: JsonObject) -> None:
    folders.configure(configured(request=TOKEN, **settings))
    assert "is not the name of a Google Cloud" in refusal_of(folders)


def test_without_a_project_it_is_said_which_variable_names_one(folders: LocationFolders) -> None:
    folders.configure(configured(request=TOKEN))
    assert "GOOGLE_VERTEX_PROJECT" in refusal_of(folders)


# ---- whose token ----------------------------------------------------------------------------


def test_without_a_login_it_is_said_how_to_log_in(folders: LocationFolders) -> None:
    folders.configure(configured(project="ours"))
    assert "gcloud auth application-default login" in refusal_of(folders)


@requirement("S92")
def test_a_project_and_a_login_offer_what_everybody_knows_of_vertex(
    folders: LocationFolders,
) -> None:
    folders.variables["GOOGLE_VERTEX_PROJECT"] = "ours"
    assert {model.provider_id for model in catalog_of(folders, known=True).models()} == {"demo"}
    log_in(folders, login())
    listed = catalog_of(folders, known=True).models()
    ids = {(model.provider_id, model.id.partition("-")[0]) for model in listed}
    assert {("google-vertex", "gemini"), ("google-vertex-anthropic", "claude")} <= ids


async def test_every_known_model_of_vertex_is_asked_at_vertex(folders: LocationFolders) -> None:
    folders.variables |= {"GOOGLE_VERTEX_PROJECT": "ours", "GOOGLE_VERTEX_LOCATION": "us-east5"}
    log_in(folders, login())
    catalog = catalog_of(folders, known=True)
    provider = catalog.all_providers["google-vertex"]
    for model in provider.models.values():
        resolved = catalog.resolve(ModelRef(id=model.id, provider_id=provider.id))
        assert isinstance(resolved, ResolvedModel) or not model.enabled, (model.id, resolved)
    claude = provider.models["claude-opus-4-8@default"]
    assert claude.api.package == "@ai-sdk/google-vertex/anthropic"


def test_a_project_with_its_own_server_gets_no_token(folders: LocationFolders) -> None:
    log_in(folders, login())
    folders.variables["PERDURE_TRUSTED"] = ""
    for env in (None, [FILE]):
        folders.configure(configured(url=ELSEWHERE, env=env))
        assert "no provider" in refusal_of(folders)


async def test_the_users_own_configuration_may_send_a_token_elsewhere(
    folders: LocationFolders,
) -> None:
    log_in(folders, login())
    folders.configure_user(configured(url=ELSEWHERE, env=[FILE]))
    (request,) = await requests_of(folders)
    assert request.url == "https://oauth2.googleapis.com/token"


@pytest.mark.parametrize(
    "url", ["https://aiplatform.googleapis.com.evil.example", "http://aiplatform.googleapis.com"]
)
async def test_a_server_that_only_looks_like_vertex_gets_no_token(
    folders: LocationFolders, url: str
) -> None:
    log_in(folders, login())
    folders.configure(configured(url=url))
    (request,) = await requests_of(folders)
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "does not hold a Google login"),
        ('{"type": "authorized_user", "client_', "does not hold a Google login"),
        ("[" * 50_000, "does not hold a Google login"),
        ([login()], "does not hold a Google login"),
        (login(refresh_token=7), "does not hold a Google login"),
        (login(refresh_token=""), "not complete"),
        (login(client_secret="canary two\nlines"), "not complete"),
        (login(client_id="x" * limits.GOOGLE_LOGIN_BYTES_MAX), "larger than"),
        (login(token_uri="https://evil.example/token"), "token server"),
        (login(token_uri="http://oauth2.googleapis.com/token"), "token server"),
        (login(token_uri="https://oauth2.googleapis.com@evil.example/token"), "token server"),
        (login(token_uri="file:///127.0.0.1"), "token server"),
        (login(type="service_account", private_key="canary"), "not complete"),
        (login(type="external_account"), "not complete"),
        (login(type="impersonated_service_account"), "not complete"),
        (login(type="external_account", token_url="https://evil.example/v1"), "token server"),
        (
            login(type="external_account", token_url="https://sts.googleapis.com.e/"),
            "token server",
        ),
        (login(type="gdch_service_account"), "not supported here"),
        (
            login(
                type="impersonated_service_account",
                service_account_impersonation_url="https://iamcredentials.googleapis.com/v1/x",
                source_credentials=login(token_uri="https://evil.example/token"),
            ),
            "token server",
        ),
    ],
)
def test_a_login_that_cannot_be_used_says_why_and_never_what_it_holds(
    folders: LocationFolders, content: object, said: str
) -> None:
    log_in(folders, content)
    folders.configure(configured(project="ours"))
    reason = refusal_of(folders)
    assert said in reason
    assert "canary" not in reason


def test_a_directory_in_place_of_the_login_is_said(folders: LocationFolders) -> None:
    folders.variables[FILE] = str(folders.project)
    folders.configure(configured(project="ours"))
    assert "is not a file" in refusal_of(folders)


@pytest.mark.parametrize(
    ("path", "said"), [("/nowhere/login.json", "is not there"), ("login.json", "absolute path")]
)
def test_a_file_that_is_named_but_is_not_there_is_not_replaced_by_another(
    folders: LocationFolders, path: str, said: str
) -> None:
    log_in(folders, login())
    folders.variables[FILE] = path
    folders.configure(configured(project="ours"))
    assert said in refusal_of(folders)


async def test_a_known_login_is_exchanged_at_google_and_nowhere_else(
    folders: LocationFolders,
) -> None:
    log_in(folders, login(token_uri="https://oauth2.googleapis.com/token"))
    folders.configure(configured(project="ours"))
    (request,) = await requests_of(folders)
    assert request.url == "https://oauth2.googleapis.com/token"
    assert b"refresh_token=canary-refresh-token" in b"".join(request.body)


# ---- a token of one's own -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "origin"),
    [
        ("europe-west4", "https://europe-west4-aiplatform.googleapis.com"),
        ("global", "https://aiplatform.googleapis.com"),
    ],
)
def test_a_token_that_is_stored_is_for_the_location_of_the_user(
    folders: LocationFolders, location: str, origin: str
) -> None:
    folders.variables |= {"GOOGLE_VERTEX_PROJECT": "ours", "GOOGLE_VERTEX_LOCATION": location}
    catalog = catalog_of(folders, known=True)
    integrations = Integrations(catalog, logins={}, variables=folders.variables, stored=dict)
    for name in ("google-vertex", "google-vertex-anthropic"):
        assert integrations.origins(name) == (origin,)
