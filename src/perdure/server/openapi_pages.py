"""The contract described by the server that keeps it: as a document, and as a page to read.

Emitted from the endpoint table when it is first asked for, then kept; what emits it is loaded then.
Not part of the contract itself: no client needs it, and it says nothing about this instance beyond
its version.
"""

from functools import cache
from importlib import import_module
from typing import Final

from perdure.protocol.api import API
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.server.http.asgi import Header
from perdure.server.response import JSON, Response
from perdure.version import __version__

DOCUMENT_PATH: Final = b"/openapi.json"
PAGE_PATH: Final = b"/doc"
PATHS: Final = frozenset({DOCUMENT_PATH, PAGE_PATH})
METHODS: Final = ("GET", "HEAD")
_NOSNIFF: Final[Header] = (b"x-content-type-options", b"nosniff")


@cache
def at(path: bytes) -> Response:
    """What stands at one of `PATHS`."""
    contract = import_module("perdure.openapi.contract").compile_contract(API)
    emitter = import_module("perdure.openapi.document")
    document: JsonObject = emitter.document(contract, title="Perdure", version=__version__)
    if path == DOCUMENT_PATH:
        return Response(200, codec.encode(document), (JSON, _NOSNIFF))
    page = import_module("perdure.server.reference_page")
    policy: str = page.SECURITY_POLICY
    text: str = page.render(document)
    headers: tuple[Header, ...] = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
        _NOSNIFF,
    )
    return Response(200, text.encode(), headers)
