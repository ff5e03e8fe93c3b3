"""Emits the contract as an OpenAPI 3.1 document.

It reads only the SDK Contract IR. The JSON Schemas are made from the decoded types, because they
contain more than a Shape: lengths, ranges, patterns.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from perdure.openapi.contract import Contract, EventKind, Failure, Operation, Outcome
from perdure.schema.codec import JsonObject, JsonValue, Payload
from perdure.schema.ids import SuppliedSessionID
from perdure.schema.live_event import SessionReplayed
from perdure.schema.location import LocationInfo, LocationRef

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"
_STREAMS: Final = frozenset({"durable_stream", "live_stream"})
_OF_EVENTS: Final = frozenset({*_STREAMS, "history"})
_STRING: Final[JsonObject] = {"type": "string"}
_SESSION_ID: Final[JsonObject] = msgspec.json.schema(SuppliedSessionID)
_LOCATION: Final[JsonObject] = {
    "name": "location",
    "in": "query",
    "required": False,
    # Written as `location[directory]=...&location[workspace]=...`.
    "style": "deepObject",
    "explode": True,
    "schema": {
        "type": "object",
        "properties": {"directory": _STRING, "workspace": _STRING},
        "additionalProperties": False,
    },
}


def document(contract: Contract, *, title: str, version: str) -> JsonObject:
    schemas = _Schemas(contract)
    paths: dict[str, JsonObject] = {}
    for operation in contract.operations:
        described = _operation(operation, schemas)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """JSON Schemas of all types in the contract, shared by reference."""

    def __init__(self, contract: Contract) -> None:
        types = list(dict.fromkeys(_types(contract)))
        schemas, self.components = msgspec.json.schema_components(types, ref_template=_REF)
        self._by_type: Mapping[JsonValue, JsonObject] = dict(zip(types, schemas, strict=True))
        self._events = contract.events

    def schema_of(self, kind: JsonValue) -> JsonObject:
        return self._by_type[kind]

    def fields(self, kind: type[Payload]) -> tuple[Mapping[str, JsonObject], frozenset[str]]:
        """The properties of a payload, and the required ones."""
        schema = self.components[self.schema_of(kind)["$ref"].rpartition("/")[2]]
        return schema.get("properties", {}), frozenset(schema.get("required", ()))

    def durable_event(self) -> JsonObject:
        """The schema of any durable event."""
        return {"oneOf": [self._event(kind) for kind in self._events if kind.followed]}

    def followed_event(self) -> JsonObject:
        """The schema of any event in a durable stream, the end of its replay included."""
        told = (kind for kind in self._events if kind.followed or kind.data is SessionReplayed)
        return {"oneOf": [self._event(kind) for kind in told]}

    def live_event(self) -> JsonObject:
        """The schema of any event in the live stream: fragments, lifecycle, and durable events."""
        return {"oneOf": [self._event(kind) for kind in self._events]}

    def _event(self, kind: EventKind) -> JsonObject:
        fields: JsonObject = {"id": _STRING, "type": {"const": kind.name}}
        if kind.durable:
            fields["durable"] = _place()
        data = {"data": self.schema_of(kind.data)}
        location = {"location": self.schema_of(LocationRef)}
        return {
            "type": "object",
            "properties": {**fields, **location, **data},
            "required": [*fields, *data],
        }


def _types(contract: Contract) -> Iterable[JsonValue]:
    yield LocationInfo
    yield LocationRef
    yield from (kind.data for kind in contract.events if kind.durable)
    yield from (kind.data for kind in contract.events if not kind.durable)
    for operation in contract.operations:
        kinds = [operation.params, operation.query, operation.body]
        if operation.success.kind not in _OF_EVENTS:
            kinds.append(operation.success.decoded)
        yield from (kind for kind in kinds if kind is not None)


def _place() -> JsonObject:
    integer = {"type": "integer"}
    properties = {"aggregateID": _STRING, "seq": integer, "version": integer}
    return {"type": "object", "properties": properties, "required": [*properties]}


def _operation(operation: Operation, schemas: _Schemas) -> JsonObject:
    described: JsonObject = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "parameters": _parameters(operation, schemas),
        "responses": _success(operation.success, schemas) | _failures(operation.failures),
    }
    if operation.body is not None:
        # Required even if the server accepts an empty body: the published contract is strict.
        content = {_JSON: {"schema": schemas.schema_of(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(operation: Operation, schemas: _Schemas) -> list[JsonObject]:
    shapes = {"sessionID": _SESSION_ID}
    if operation.params is not None:
        shapes |= schemas.fields(operation.params)[0]
    asked: Mapping[str, JsonObject] = {}
    if operation.query is not None:
        asked = schemas.fields(operation.query)[0]
    found: list[JsonObject] = []
    for one in operation.parameters:
        if one.place in {"path", "query"}:
            schema = asked[one.wire] if one.place == "query" else shapes.get(one.wire, _STRING)
            found.append(
                {"name": one.wire, "in": one.place, "required": one.required, "schema": schema}
            )
    if any(one.place == "location" for one in operation.parameters):
        found.append(_LOCATION)
    return found


def _failures(failures: Iterable[Failure]) -> JsonObject:
    by_status: dict[int, set[str]] = {}
    for failure in failures:
        by_status.setdefault(failure.status, set()).add(failure.tag)
    return {str(status): _failure(sorted(tags)) for status, tags in sorted(by_status.items())}


def _failure(tags: list[str]) -> JsonObject:
    schema = {
        "type": "object",
        "properties": {"_tag": {"enum": tags}, "message": _STRING},
        "required": ["_tag", "message"],
    }
    return {"description": ", ".join(tags), "content": {_JSON: {"schema": schema}}}


def _success(success: Outcome, schemas: _Schemas) -> JsonObject:
    if success.kind == "no_content":
        return {"204": {"description": "Done"}}
    if success.kind == "websocket":
        return {"101": {"description": "Upgraded to a WebSocket"}}
    if success.kind == "content":
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        return {"200": {"description": "Success", "content": content}}
    item = _item(success, schemas)
    if success.kind in _STREAMS:
        content = {"text/event-stream": {"schema": item}}
    else:
        content = {_JSON: {"schema": _enveloped(success.kind, item, schemas)}}
    return {"200": {"description": "Success", "content": content}}


def _item(success: Outcome, schemas: _Schemas) -> JsonObject:
    if success.kind == "live_stream":
        return schemas.live_event()
    if success.kind == "durable_stream":
        return schemas.followed_event()
    if success.kind in _OF_EVENTS:
        return schemas.durable_event()
    return {} if success.decoded is None else schemas.schema_of(success.decoded)


def _enveloped(kind: str, item: JsonObject, schemas: _Schemas) -> JsonObject:
    if kind == "bare":
        return item
    listed = {"type": "array", "items": item}
    cursor = {"type": "object", "properties": {"previous": _STRING, "next": _STRING}}
    properties: dict[str, JsonObject] = {
        "data": {"data": item},
        "location_data": {"location": schemas.schema_of(LocationInfo), "data": item},
        "page": {"data": listed, "cursor": cursor},
        "history": {"data": listed, "hasMore": {"type": "boolean"}},
    }
    fields = properties[kind]
    return {"type": "object", "properties": fields, "required": list(fields)}
