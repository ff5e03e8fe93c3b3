"""Pages of the public internet. How models are called is net.transport."""

from typing import Protocol

from perdure.schema.value import Value


class WebRequest(Value, kw_only=True):
    url: str
    accept: str = "*/*"
    allowed_hosts: tuple[str, ...] = ()
    """Hosts of the user's own network that may be reached; see core.web.address."""
    seconds_max: float
    """For everything: finding, connecting, every redirect, the last byte."""


class WebPage(Value, kw_only=True):
    url: str
    """Where it was in the end; the asked URL itself, unless that redirected."""
    content_type: str
    """The header as it came, or nothing."""
    body: bytes


class WebFetchError(Exception):
    """There is no page, for a reason that the model may read."""


class WebPages(Protocol):
    async def fetch(self, request: WebRequest) -> WebPage:
        """GET a page of the public internet, without credentials; raises WebFetchError.

        No address that is not global is ever connected to, whatever the URL, a name or a redirect
        leads to, unless its host is allowed.
        """
        ...
