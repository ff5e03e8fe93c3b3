"""Access to AWS: region, URL and keys, and the profile files of the AWS tools.

They come from settings, or from the environment variables that AWS programs read. Those variables
have no URL of their own, so they are sent only to AWS, or where the user's own configuration sends
them. Signing is llm.aws.signature.

Invariant: a region with an invalid name gives no URL.
"""

from collections.abc import Callable, Mapping
from typing import Final

from perdure.core.credentials import keys
from perdure.core.credentials.keys import KeyLookup, KeyMissing, NoKeyNeeded
from perdure.core.models.transport import Api
from perdure.lazy_pattern import lazy_pattern
from perdure.llm.aws.signature import AwsKeys
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

BEARER: Final = "AWS_BEARER_TOKEN_BEDROCK"
_ACCESS_KEY: Final = "AWS_ACCESS_KEY_ID"
_SECRET_KEY: Final = "AWS_SECRET_ACCESS_KEY"
_SESSION_TOKEN: Final = "AWS_SESSION_TOKEN"
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_NOT_BEARERS: Final = frozenset({_ACCESS_KEY, _SECRET_KEY, _SESSION_TOKEN, *_REGIONS})
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
REGION_DEFAULT: Final = "us-east-1"
_REGION: Final = lazy_pattern(r"[a-z]{2,4}(?:-[a-z]+){1,3}-\d{1,2}")
_ORIGIN: Final = lazy_pattern(
    rf"https://bedrock-runtime(?:-fips)?\.({_REGION.pattern})\.amazonaws\.com(?:\.cn)?"
)
MISSING: Final = KeyMissing(
    f"no AWS credentials: set {BEARER}, or {_ACCESS_KEY} and {_SECRET_KEY}, or log in with the AWS"
    " tools"
)
_LOGIN_VARIABLES: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
)
"""Each says that the AWS tools would find keys: AWS SDKs and Tools reference, settings."""
_DEFAULT_PROFILE: Final = "default"
_NO_LOGIN_SETTINGS: Final = frozenset({"region", "output"})


class AwsLogin(Value):
    """Stands for the keys of the user's AWS login, which are got when a request is sent."""


def may_have_login(variables: Mapping[str, str], *, credentials: str, config: str) -> bool:
    """Whether the AWS tools would look for keys, from the environment and the profile files."""
    if any(variables.get(name) for name in _LOGIN_VARIABLES):
        return True
    name = _profile(variables)
    found = {**read_section(config, name), **read_section(credentials, name)}
    return bool(found.keys() - _NO_LOGIN_SETTINGS)


def region_of(api: Api, variables: Mapping[str, str]) -> str:
    """The region: from the settings, the URL, the environment, or the default."""
    at_aws = _ORIGIN.fullmatch(keys.origin_of(api.url) or "")
    configured = api.settings.get("region")
    named = [configured] if isinstance(configured, str) and configured else []
    named += [at_aws[1]] if at_aws else []
    named += [variables[name] for name in _REGIONS if variables.get(name)]
    return (*named, REGION_DEFAULT)[0]


def url_of(api: Api, variables: Mapping[str, str]) -> str | None:
    """The URL of Bedrock; None if the region is invalid."""
    region = region_of(api, variables)
    if not _REGION.fullmatch(region):
        return None
    ending = ".cn" if region.startswith("cn-") else ""
    usual = f"https://bedrock-runtime.{region}.amazonaws.com{ending}"
    return api.url or _endpoint(variables) or usual


def bearer_names(names: tuple[str, ...], url: str | None) -> tuple[str, ...]:
    """The variables of a provider that hold a bearer token; AWS has one by default."""
    given = tuple(name for name in names if name not in _NOT_BEARERS)
    return given or ((BEARER,) if _is_aws(url) else ())


def with_aws_origins(
    url: str | None, origins: Mapping[str, frozenset[str]], variables: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """The addresses for variables; those of AWS may go to AWS in any region, and to its endpoint
    in the environment."""
    known = dict(origins)
    origin = keys.origin_of(url)
    if origin is not None and (_is_aws(url) or origin == keys.origin_of(_endpoint(variables))):
        for name in (BEARER, _ACCESS_KEY):
            known[name] = known.get(name, frozenset()) | {origin}
    return known


def find_keys(
    found: KeyLookup,
    *,
    api: Api,
    variables: Mapping[str, str],
    origins: Mapping[str, frozenset[str]],
    login: Callable[[], AwsLogin | KeyMissing],
) -> KeyLookup | AwsKeys | AwsLogin:
    """The token that was found, else keys to sign with, else the login, else what is missing.

    `origins`: where each variable may be sent. The keys of the login may go where those of the
    environment may.
    """
    url = url_of(api, variables)
    if url is None:
        return KeyMissing(f"{region_of(api, variables)[:60]!r} is not the name of an AWS region")
    if not isinstance(found, KeyMissing | NoKeyNeeded):
        return found
    configured = _configured(api.settings)
    if configured is not None:
        return configured
    origin = keys.origin_of(url) or ""
    if not keys.may_send(_ACCESS_KEY, origin, origins):
        return found
    if variables.get(_ACCESS_KEY) and variables.get(_SECRET_KEY):
        return AwsKeys(
            variables[_ACCESS_KEY], variables[_SECRET_KEY], variables.get(_SESSION_TOKEN, "")
        )
    logged_in = login()
    # A self-hosted server may need no key; AWS always does.
    return logged_in if _is_aws(url) or isinstance(logged_in, AwsLogin) else found


def _endpoint(variables: Mapping[str, str]) -> str | None:
    return next((variables[name] for name in _ENDPOINTS if variables.get(name)), None)


def _is_aws(url: str | None) -> bool:
    return _ORIGIN.fullmatch(keys.origin_of(url) or "") is not None


def _configured(settings: JsonObject) -> AwsKeys | None:
    access, secret = settings.get("accessKeyId"), settings.get("secretAccessKey")
    if not (isinstance(access, str) and access and isinstance(secret, str) and secret):
        return None
    token = settings.get("sessionToken")
    return AwsKeys(access, secret, token if isinstance(token, str) else "")


_SECTION: Final = lazy_pattern(r"\[\s*+(?:profile\s++(?!\]))?([^\]]++)\]")
_KEYS: Final[Mapping[str, str]] = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_PROFILE_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


def with_profile(
    variables: Mapping[str, str], *, credentials: str, config: str
) -> Mapping[str, str]:
    """`variables` with those of the profile `AWS_PROFILE`; unchanged if it adds none.

    Of the default profile only the region is taken: its keys are those of the login.
    """
    name = _profile(variables)
    found = {**read_section(config, name), **read_section(credentials, name)}
    added: dict[str, str] = {}
    if variables.get("AWS_PROFILE") and not variables.get("AWS_ACCESS_KEY_ID"):
        # Never combine the access key of one pair with the secret of another.
        added = {_KEYS[key]: found[key] for key in _KEYS if found.get(key)}
    if found.get("region") and not any(variables.get(each) for each in _PROFILE_REGIONS):
        added["AWS_REGION"] = found["region"]
    return {**variables, **added} if added else variables


def _profile(variables: Mapping[str, str]) -> str:
    return variables.get("AWS_PROFILE") or _DEFAULT_PROFILE


def read_section(text: str, name: str) -> dict[str, str]:
    """The settings in section `[name]` or `[profile name]`; the last one wins."""
    found: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("["):
            head = _SECTION.match(stripped)
            inside = head is not None and head[1].rstrip() == name
        elif inside and line[0] not in " \t":
            key, _, value = stripped.partition("=")
            found[key.strip().lower()] = value.strip()
    return found
