"""The endpoint table as an OpenAPI 3.1 document. Pure: whoever wants a file writes it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from perdure.protocol.endpoint import STREAMS, Endpoint, Success
from perdure.protocol.errors import STATUS_BY_ERROR
from perdure.schema import manifest
from perdure.schema.codec import JsonObject, Payload
from perdure.schema.errors import DomainError
from perdure.schema.ids import SuppliedSessionID
from perdure.schema.live_event import LIVE_TYPES
from perdure.schema.location import LocationInfo, LocationRef

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"
_OF_EVENTS: Final = frozenset({"history", "durable_stream", "live_stream"})
_STRING: Final[JsonObject] = {"type": "string"}
_SESSION_ID: Final[JsonObject] = msgspec.json.schema(SuppliedSessionID)
_LOCATION: Final[JsonObject] = {
    "name": "location",
    "in": "query",
    "required": False,
    # Spelled `location[directory]=...&location[workspace]=...`.
    "style": "deepObject",
    "explode": True,
    "schema": {
        "type": "object",
        "properties": {"directory": _STRING, "workspace": _STRING},
        "additionalProperties": False,
    },
}


def document(endpoints: Iterable[Endpoint], *, title: str, version: str) -> JsonObject:
    table = tuple(endpoints)
    schemas = _Schemas(table)
    paths: dict[str, JsonObject] = {}
    for endpoint in table:
        operation = _operation(endpoint, schemas)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """JSON Schemas of every type that the table names, shared by reference."""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        types = list(dict.fromkeys(_types(endpoints)))
        schemas, self.components = msgspec.json.schema_components(types, ref_template=_REF)
        self._by_type: Mapping[Any, JsonObject] = dict(zip(types, schemas, strict=True))

    def of(self, kind: Any) -> JsonObject:
        return self._by_type[kind]

    def fields(self, kind: type[Payload]) -> tuple[Mapping[str, JsonObject], frozenset[str]]:
        """The properties of a payload, and which of them are required."""
        schema = self.components[self.of(kind)["$ref"].rpartition("/")[2]]
        return schema.get("properties", {}), frozenset(schema.get("required", ()))

    def durable_event(self) -> JsonObject:
        """Any event of the log, as its readers see it."""
        integer = {"type": "integer"}
        names = ("aggregateID", "seq", "version")
        place = dict(zip(names, ({"type": "string"}, integer, integer), strict=True))
        durable = {"type": "object", "properties": place, "required": list(names)}
        return {
            "oneOf": [
                self._event(item.type, item.shape, {"durable": durable})
                for item in manifest.DEFINITIONS
                if item.public
            ]
        }

    def live_event(self) -> JsonObject:
        """Whatever the live stream may carry: fragments, lifecycle, and durable events."""
        live = [self._event(name, shape, {}) for shape, name in LIVE_TYPES.items()]
        return {"oneOf": [*live, *self.durable_event()["oneOf"]]}

    def _event(self, name: str, shape: Any, extra: JsonObject) -> JsonObject:
        fields = {"id": {"type": "string"}, "type": {"const": name}, **extra}
        data = {"data": self.of(shape)}
        location = {"location": self.of(LocationRef)}
        return {
            "type": "object",
            "properties": {**fields, **location, **data},
            "required": [*fields, *data],
        }


def _types(endpoints: tuple[Endpoint, ...]) -> Iterable[Any]:
    yield LocationInfo
    yield LocationRef
    yield from (item.shape for item in manifest.DEFINITIONS if item.public)
    yield from LIVE_TYPES
    for endpoint in endpoints:
        kinds = [endpoint.params, endpoint.query, endpoint.body]
        if endpoint.success.kind not in _OF_EVENTS:
            kinds.append(endpoint.success.type)
        yield from (kind for kind in kinds if kind is not None)


def _operation(endpoint: Endpoint, schemas: _Schemas) -> JsonObject:
    operation: JsonObject = {
        "operationId": endpoint.operation_id,
        "tags": [endpoint.group],
        "parameters": _parameters(endpoint, schemas),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.body is not None:
        # Required even where an empty one is understood: what is published stays strict.
        content = {_JSON: {"schema": schemas.of(endpoint.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(endpoint: Endpoint, schemas: _Schemas) -> list[JsonObject]:
    names = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    shapes = {"sessionID": _SESSION_ID}
    if endpoint.params is not None:
        shapes |= schemas.fields(endpoint.params)[0]
    found = [
        {"name": n, "in": "path", "required": True, "schema": shapes.get(n, _STRING)} for n in names
    ]
    if endpoint.query is not None:
        properties, required = schemas.fields(endpoint.query)
        found += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in properties.items()
        ]
    if endpoint.scope == "location":
        found.append(_LOCATION)
    return found


def _responses(endpoint: Endpoint, schemas: _Schemas) -> JsonObject:
    by_status: dict[int, list[type[DomainError]]] = {}
    for error in endpoint.failures:
        by_status.setdefault(STATUS_BY_ERROR[error], []).append(error)
    failures = {str(status): _failure(kinds) for status, kinds in sorted(by_status.items())}
    return _success(endpoint.success, schemas) | failures


def _failure(kinds: list[type[DomainError]]) -> JsonObject:
    tags = sorted({kind.tag for kind in kinds})
    schema = {
        "type": "object",
        "properties": {"_tag": {"enum": tags}, "message": {"type": "string"}},
        "required": ["_tag", "message"],
    }
    return {"description": ", ".join(tags), "content": {_JSON: {"schema": schema}}}


def _success(success: Success, schemas: _Schemas) -> JsonObject:
    if success.kind == "no_content":
        return {"204": {"description": "Done"}}
    if success.kind == "websocket":
        return {"101": {"description": "Upgraded to a WebSocket"}}
    if success.kind == "content":
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        return {"200": {"description": "Success", "content": content}}
    item = _item(success, schemas)
    if success.kind in STREAMS:
        content = {"text/event-stream": {"schema": item}}
    else:
        content = {_JSON: {"schema": _enveloped(success.kind, item, schemas)}}
    return {"200": {"description": "Success", "content": content}}


def _item(success: Success, schemas: _Schemas) -> JsonObject:
    if success.kind == "live_stream":
        return schemas.live_event()
    if success.kind in _OF_EVENTS:
        return schemas.durable_event()
    return {} if success.type is None else schemas.of(success.type)


def _enveloped(kind: str, item: JsonObject, schemas: _Schemas) -> JsonObject:
    if kind == "bare":
        return item
    listed = {"type": "array", "items": item}
    string = {"type": "string"}
    cursor = {"type": "object", "properties": {"previous": string, "next": string}}
    properties: dict[str, JsonObject] = {
        "data": {"data": item},
        "location_data": {"location": schemas.of(LocationInfo), "data": item},
        "page": {"data": listed, "cursor": cursor},
        "history": {"data": listed, "hasMore": {"type": "boolean"}},
    }
    fields = properties[kind]
    return {"type": "object", "properties": fields, "required": list(fields)}
