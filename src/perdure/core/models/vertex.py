"""Access to Vertex AI: project, location, URL and token.

They come from settings, or from the environment variables that Google Cloud programs read. The
user's Google login is sent to Vertex AI, or where the user's own configuration sends it by naming
`GOOGLE_APPLICATION_CREDENTIALS` beside a URL. Reading a login is core.credentials.google.

Invariant: an invalid name of a project or location gives no URL.
"""

from collections.abc import Mapping
from typing import Final

from perdure.core.credentials import google, keys
from perdure.core.credentials.google import GoogleLoginLookup, GoogleToken, NoGoogleLogin
from perdure.core.credentials.keys import KeyLookup, KeyMissing, NoKeyNeeded
from perdure.core.models.transport import Api
from perdure.lazy_pattern import lazy_pattern

_PROJECTS: Final = ("GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT")
_LOCATIONS: Final = ("GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION")
_NOT_KEYS: Final = frozenset({google.FILE, *_PROJECTS, *_LOCATIONS})
_LOCATION_DEFAULT: Final = "us-central1"
_GLOBAL: Final = "global"
_PROJECT: Final = lazy_pattern(r"(?:[a-z0-9.-]{1,100}:)?[a-z0-9][a-z0-9-]{0,62}")
_REGION: Final = lazy_pattern(r"[a-z]{2,20}-[a-z]{2,20}\d{1,2}")
_ORIGIN: Final = lazy_pattern(rf"https://(?:{_REGION.pattern}-)?aiplatform\.googleapis\.com")


def url_of(api: Api, publisher: str, variables: Mapping[str, str]) -> str | None:
    """The URL of a publisher's models; None if there is a `fault`."""
    if api.url:
        return api.url
    if find_fault(api, variables) is not None:
        return None
    project, location = _project(api, variables), _location(api, variables)
    below = f"v1/projects/{project}/locations/{location}/publishers/{publisher}"
    return f"https://{_host(location)}/{below}"


def address_parts(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables for published Vertex URLs, derived from the user's variables."""
    anywhere = Api()
    if find_fault(anywhere, variables) is not None:
        return {}
    location = _location(anywhere, variables)
    return {
        _PROJECTS[0]: _project(anywhere, variables),
        _LOCATIONS[0]: location,
        "GOOGLE_VERTEX_ENDPOINT": _host(location),
    }


def find_fault(api: Api, variables: Mapping[str, str]) -> str | None:
    """Why there is no URL, as a message to a person; None if there is one."""
    if api.url:
        return None
    project, location = _project(api, variables), _location(api, variables)
    if not project:
        return f"no Google Cloud project: set {_PROJECTS[0]}"
    if not _PROJECT.fullmatch(project):
        return f"{project[:60]!r} is not the name of a Google Cloud project"
    if location != _GLOBAL and not _REGION.fullmatch(location):
        return f"{location[:60]!r} is not the name of a Google Cloud location"
    return None


def is_vertex(url: str | None) -> bool:
    return _ORIGIN.fullmatch(keys.origin_of(url) or "") is not None


def token_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The variables of a provider that hold a token."""
    return tuple(name for name in names if name not in _NOT_KEYS)


def find_token(
    found: KeyLookup,
    *,
    url: str | None,
    origins: Mapping[str, frozenset[str]],
    login: GoogleLoginLookup,
) -> KeyLookup | GoogleToken:
    """The token that was found, else one of the user's Google login, else what is missing.

    `origins`: where each variable may be sent.
    """
    if not isinstance(found, KeyMissing | NoKeyNeeded):
        return found
    at_vertex = is_vertex(url)
    if not at_vertex and not keys.may_send(google.FILE, keys.origin_of(url) or "", origins):
        # A self-hosted server may need no token.
        return found
    return KeyMissing(login.reason) if isinstance(login, NoGoogleLogin) else GoogleToken()


def _host(location: str) -> str:
    prefix = "" if location == _GLOBAL else f"{location}-"
    return f"{prefix}aiplatform.googleapis.com"


def _project(api: Api, variables: Mapping[str, str]) -> str:
    return _read_setting(api, "project", variables, _PROJECTS)


def _location(api: Api, variables: Mapping[str, str]) -> str:
    return _read_setting(api, "location", variables, _LOCATIONS) or _LOCATION_DEFAULT


def _read_setting(
    api: Api, setting: str, variables: Mapping[str, str], names: tuple[str, ...]
) -> str:
    configured = api.settings.get(setting)
    if isinstance(configured, str) and configured:
        return configured
    return next((variables[name] for name in names if variables.get(name)), "")
