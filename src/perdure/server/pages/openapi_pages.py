"""The contract as an OpenAPI document and as HTML, and the page at `/` if no web page was built.

Each is made on its first request, with modules that are loaded then, and kept. They are not part
of the contract, and tell nothing of this instance but its version, which `/` does not tell.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from perdure.protocol.api import API
from perdure.schema import codec
from perdure.server.http.asgi import Header
from perdure.server.pages.web_page import START_PATH
from perdure.server.response import JSON, Response
from perdure.version import __version__

if TYPE_CHECKING:
    from perdure.server.pages.reference_page import Document

DOCUMENT_PATH: Final = b"/openapi.json"
PAGE_PATH: Final = b"/doc"
PATHS: Final = frozenset({DOCUMENT_PATH, PAGE_PATH, START_PATH})
METHODS: Final = ("GET", "HEAD")
_NOSNIFF: Final[Header] = (b"x-content-type-options", b"nosniff")


@cache
def get_page(path: bytes) -> Response:
    """The answer at one of `PATHS`."""
    page = import_module("perdure.server.pages.reference_page")
    if path == START_PATH:
        start = import_module("perdure.server.pages.start_page")
        return _html(start.PAGE, page.SECURITY_POLICY)
    contract = import_module("perdure.openapi.contract").compile_contract(API)
    emitter = import_module("perdure.openapi.document")
    document: Document = emitter.document(contract, title="Perdure", version=__version__)
    if path == DOCUMENT_PATH:
        return Response(200, codec.encode(document), (JSON, _NOSNIFF))
    return _html(page.render(document), page.SECURITY_POLICY)


def _html(text: str, policy: str) -> Response:
    headers: tuple[Header, ...] = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
        _NOSNIFF,
    )
    return Response(200, text.encode(), headers)
