"""Access to Vertex AI: in which project and location, at which address, and for whose token.

Settings say it, or the variables that the programs for Google Cloud read. The user's Google login
goes to Vertex itself, or where the user's own configuration sends it by naming
`GOOGLE_APPLICATION_CREDENTIALS` beside an address. Reading a login is core.credentials.google.

Invariant: what is not the name of a project or a location reaches no address.
"""

import re
from collections.abc import Mapping
from typing import Final

from perdure.core.credentials import google, keys
from perdure.core.credentials.google import GoogleLoginLookup, GoogleToken, NoGoogleLogin
from perdure.core.credentials.keys import KeyLookup, KeyMissing, NoKeyNeeded
from perdure.core.models.transport import Api

_PROJECTS: Final = ("GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT")
_LOCATIONS: Final = ("GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION")
_NOT_KEYS: Final = frozenset({google.FILE, *_PROJECTS, *_LOCATIONS})
_LOCATION_DEFAULT: Final = "us-central1"
_GLOBAL: Final = "global"
_PROJECT: Final = re.compile(r"(?:[a-z0-9.-]{1,100}:)?[a-z0-9][a-z0-9-]{0,62}")
_REGION: Final = re.compile(r"[a-z]{2,20}-[a-z]{2,20}\d{1,2}")
_ORIGIN: Final = re.compile(rf"https://(?:{_REGION.pattern}-)?aiplatform\.googleapis\.com")


def url_of(api: Api, publisher: str, variables: Mapping[str, str]) -> str | None:
    """Where the models of a publisher are; None where `fault` says why."""
    if api.url:
        return api.url
    if find_fault(api, variables) is not None:
        return None
    project, location = _project(api, variables), _location(api, variables)
    below = f"v1/projects/{project}/locations/{location}/publishers/{publisher}"
    return f"https://{_host(location)}/{below}"


def address_parts(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables in published addresses at Vertex, as far as the user's complete them."""
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
    """Why there is no address, in words for the person."""
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
    """Of a provider's variables those that hold a token by themselves."""
    return tuple(name for name in names if name not in _NOT_KEYS)


def find_token(
    found: KeyLookup,
    *,
    url: str | None,
    origins: Mapping[str, frozenset[str]],
    login: GoogleLoginLookup,
) -> KeyLookup | GoogleToken:
    """The token that was found, else one of the user's Google login, else what is missing.

    `origins` are the homes of the variables.
    """
    if not isinstance(found, KeyMissing | NoKeyNeeded):
        return found
    at_vertex = is_vertex(url)
    if not at_vertex and not keys.may_send(google.FILE, keys.origin_of(url) or "", origins):
        # A server of one's own may need no token.
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
