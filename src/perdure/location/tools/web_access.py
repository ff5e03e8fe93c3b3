"""What a Location may do on the web: which internal hosts it reaches, which service it searches.

Both are the user's to decide, in the environment or in their own configuration; a project's
documents have no say. Without a key, a flag or a setting that names a service there is no search.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from perdure.core.settings.settings import WebSettings
from perdure.location.tools.site import ToolSite
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
# In the order in which they count.
_FLAGS: Final = (("OPENCODE_ENABLE_PARALLEL", PARALLEL), ("OPENCODE_ENABLE_EXA", EXA))
_TRUE: Final = frozenset({"1", "true"})


class Web(Value, kw_only=True):
    """What every Location reaches the web through."""

    pages: WebPages
    transport: HttpTransport

    def access(self, site: ToolSite) -> WebAccess:
        web, variables = site.settings.web, site.environment.variables
        backends = [
            JsonRpcSearch(
                service=service,
                transport=self.transport,
                key=variables.get(service.key_variable, ""),
            )
            for service in services(web, variables)
        ]
        return WebAccess(
            pages=self.pages,
            allowed_hosts=web.allowed_hosts,
            search=lambda session_id: _of_session(backends, session_id),
        )


def services(web: WebSettings, variables: Mapping[str, str]) -> tuple[SearchService, ...]:
    """The services that the user chose: one that is named, else those that there is a key for."""
    named = variables.get(_PROVIDER) or web.search_provider
    for service in SERVICES:
        if service.name == named:
            moved = web.search_url if service.name == web.search_provider else None
            return (replace(service, url=moved) if moved else service,)
    for flag, service in _FLAGS:
        if variables.get(flag, "").lower() in _TRUE:
            return (service,)
    return tuple(service for service in SERVICES if variables.get(service.key_variable))


def _of_session(backends: Sequence[SearchBackend], session_id: SessionID) -> SearchBackend | None:
    """The same one for all of a Session, in every process."""
    return backends[zlib.crc32(session_id.encode()) % len(backends)] if backends else None
