"""The reference page of the HTTP contract: each operation with its parts, answer and errors."""

from collections.abc import Iterator
from itertools import groupby

import msgspec

from perdure.openapi.names import public_name
from perdure.protocol.api import API
from perdure.protocol.endpoint import Endpoint
from perdure.protocol.errors import STATUS_BY_ERROR
from scripts.docs_site import records
from scripts.docs_site.records import code, table_row

_INTRODUCTION = """# HTTP operations

Every operation of the server, from the table that the server, the clients and the OpenAPI document
are made of. The document with all schemas is
[openapi.json](docs/openapi.json); a running server answers it at `/doc`.

Credentials go in the header `Authorization`: `Basic` with any user name and the server's password.
A body is JSON. An error is a JSON object with `_tag` and `message`; besides those listed, every
operation may answer 400, 401, 403, 429, 503 and 507.
"""
_ANSWERS = {
    "data": "`{data}`",
    "location_data": "`{location, data}`",
    "bare": "the value itself",
    "page": "`{data: [...], cursor: {previous?, next?}}`",
    "history": "`{data: [...], hasMore}`",
    "no_content": "204, without a body",
    "content": "the bytes of a file, or a range of them",
    "websocket": "messages in both directions, after an upgrade to a WebSocket",
    "durable_stream": "server-sent events; resume with the last sequence number",
    "live_stream": "server-sent events, while connected",
}
_COMMON = frozenset({400, 401, 403, 429, 503, 507})


def write() -> str:
    return "\n".join([_INTRODUCTION, *_groups()])


def _groups() -> Iterator[str]:
    ordered = sorted(API, key=lambda endpoint: endpoint.group)
    for group, endpoints in groupby(ordered, key=lambda endpoint: endpoint.group):
        yield f"## {group}\n"
        for endpoint in endpoints:
            yield from _operation(endpoint)


def _operation(endpoint: Endpoint) -> Iterator[str]:
    name = public_name(endpoint.operation_id)
    yield f"### {endpoint.method} {endpoint.path}\n"
    yield f"{name.summary}\n"
    called = ".".join((*name.group, name.method))
    yield f"Operation `{endpoint.operation_id}`; in clients `{called}`."
    opened = " Needs no credentials." if endpoint.is_open else ""
    yield f"Answer: {_ANSWERS[endpoint.success.kind]}.{opened}\n"
    parts = (("path", endpoint.params), ("query", endpoint.query), ("body", endpoint.body))
    rows = [row for place, kind in parts if kind is not None for row in _fields(place, kind)]
    if rows:
        yield table_row("field", "in", "type", "")
        yield "|---|---|---|---|"
        yield from rows
        yield ""
    errors = sorted({(STATUS_BY_ERROR[error], error.tag) for error in endpoint.failures})
    own = [f"{status} `{tag}`" for status, tag in errors if status not in _COMMON]
    if own:
        yield f"Errors: {', '.join(own)}.\n"


def _fields(place: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    for field in records.list_fields(kind):
        needed = "required. " if field.required else ""
        yield table_row(code(field.name), place, code(field.type), (needed + field.doc).strip())
