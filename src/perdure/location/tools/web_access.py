"""Web access of a Location: the internal hosts it may reach, and its search service.

Only the user decides both, in the environment or in their own configuration; a project's documents
cannot. Without a key, a flag or a setting that names a service there is no search.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from perdure.core.settings.settings import WebSettings
from perdure.location.tools.location_tools import ToolServices
from perdure.net.transport import HttpTransport
from perdure.ports import WebPages
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.tools.environment import WebAccess
from perdure.tools.web.search_backend import (
    EXA,
    PARALLEL,
    SERVICES,
    JsonRpcSearch,
    SearchBackend,
    SearchService,
)

_PROVIDER: Final = "OPENCODE_WEBSEARCH_PROVIDER"
# In order of precedence.
_FLAGS: Final = (("OPENCODE_ENABLE_PARALLEL", PARALLEL), ("OPENCODE_ENABLE_EXA", EXA))
_TRUE: Final = frozenset({"1", "true"})


class WebServices(Value, kw_only=True):
    """The web clients that all Locations share."""

    pages: WebPages
    transport: HttpTransport

    def access(self, services: ToolServices) -> WebAccess:
        web, variables = services.settings.web, services.environment.variables
        backends = [
            JsonRpcSearch(
                service=service,
                transport=self.transport,
                key=variables.get(service.key_variable, ""),
            )
            for service in choose_services(web, variables)
        ]
        return WebAccess(
            pages=self.pages,
            allowed_hosts=web.allowed_hosts,
            search=lambda session_id: _choose_backend(backends, session_id),
        )


def choose_services(web: WebSettings, variables: Mapping[str, str]) -> tuple[SearchService, ...]:
    """The search services to use: the one that the user named, else all that have a key."""
    named = variables.get(_PROVIDER) or web.search_provider
    for service in SERVICES:
        if service.name == named:
            url = web.search_url if service.name == web.search_provider else None
            return (replace(service, url=url) if url else service,)
    for flag, service in _FLAGS:
        if variables.get(flag, "").lower() in _TRUE:
            return (service,)
    return tuple(service for service in SERVICES if variables.get(service.key_variable))


def _choose_backend(
    backends: Sequence[SearchBackend], session_id: SessionID
) -> SearchBackend | None:
    """Always the same backend for a Session, in every process."""
    return backends[zlib.crc32(session_id.encode()) % len(backends)] if backends else None
