"""Port for pages of the public internet. Model calls use net.transport."""

from typing import Protocol

from perdure.schema.value import Value


class WebRequest(Value, kw_only=True):
    url: str
    accept: str = "*/*"
    allowed_hosts: tuple[str, ...] = ()
    """Hosts outside the public internet that may be reached; see core.web.address."""
    seconds_max: float
    """Total time: name resolution, connection, redirects and body."""


class WebPage(Value, kw_only=True):
    url: str
    """The final URL after redirects."""
    content_type: str
    """The header as received; empty if there was none."""
    body: bytes


class WebFetchError(Exception):
    """The page could not be fetched. The model may read the message."""


class WebPages(Protocol):
    async def fetch(self, request: WebRequest) -> WebPage:
        """GET a page of the public internet, without credentials; raises WebFetchError.

        It never connects to an address that is not global, whatever the URL, a name or a redirect
        resolves to, unless its host is allowed.
        """
        ...
