"""The settings of webfetch and websearch, from the user's own documents."""

from collections.abc import Sequence

from msgspec import UNSET

from perdure.core.config_file.entries import WebFetchEntry, WebSearchEntry
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value


class WebSettings(Value, kw_only=True):
    allowed_hosts: tuple[str, ...] = ()
    """Hosts outside the public internet that webfetch may reach."""
    search_provider: str | None = None
    search_url: str | None = None
    """URL of the search provider, if not its default."""


def merge(documents: Sequence[Document]) -> WebSettings:
    """The settings of these documents; the last wins."""
    fetch: JsonObject = {}
    search: JsonObject = {}
    for document in documents:
        fetch |= document.webfetch
        search |= document.websearch
    allowed = codec.convert(WebFetchEntry, fetch).allowed_hosts
    chosen = codec.convert(WebSearchEntry, search)
    return WebSettings(
        allowed_hosts=() if allowed is UNSET else allowed,
        search_provider=chosen.provider or None,
        search_url=chosen.url or None,
    )
