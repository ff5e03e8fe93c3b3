"""The SDK Contract IR: the endpoint table, compiled once for emitters.

Each operation has its public name, its parameters with wire form and decoded type, its success
result, its declared errors and its transport. It is independent of languages and HTTP libraries.
The document that the server publishes is emitted from it too.

Invariant: every endpoint is one operation here, and emitters read nothing else.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_type_hints

from perdure.openapi.failures import failure_records
from perdure.openapi.names import ALIASES, Alias, PublicName, public_name
from perdure.openapi.shapes import Choice, Field, OneOf, Record, Ref, Scalar, Shape, ShapeTable
from perdure.protocol.endpoint import Endpoint, Method, SuccessKind
from perdure.protocol.errors import STATUS_BY_ERROR
from perdure.schema import manifest
from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import DomainError
from perdure.schema.ids import SessionID
from perdure.schema.live_event import LIVE_TYPES
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

Place = Literal["path", "query", "body", "location"]
"""`location`: also in the query, but added to every operation on a Location."""

DURABLE_EVENT: Final = "DurableEvent"
LIVE_EVENT: Final = "LiveEvent"

_STRING: Final = Scalar("string")
_LOCATION: Final = ("directory", "workspace")
_IDS: Final = re.compile(r"ID\b|[A-Z]")


class Parameter(Value, kw_only=True):
    name: str
    """In snake_case; each emitter spells it in its language's style."""
    wire: str
    place: Place
    required: bool
    leading: bool
    """Whether it may be given by position."""
    encoded: Shape
    decoded: JsonValue


class Outcome(Value, kw_only=True):
    """The success result: its envelope and content."""

    kind: SuccessKind
    encoded: Shape | None
    decoded: JsonValue


class Failure(Value):
    tag: str
    status: int


class EventKind(Value):
    """An event of a stream: its wire name and the decoded type of its data."""

    name: str
    data: type[Value]
    durable: bool
    followed: bool = False
    """Whether the stream and the history of a Session tell it."""


class Operation(Value, kw_only=True):
    id: str
    tag: str
    """The OpenAPI tag under which the document lists it."""
    public: PublicName
    method: Method
    path: str
    parameters: tuple[Parameter, ...]
    params: type[Payload] | None
    """Path parameters besides the Session id."""
    query: type[Payload] | None
    body: type[Payload] | None
    success: Outcome
    failures: tuple[Failure, ...]


class Contract(Value, kw_only=True):
    operations: tuple[Operation, ...]
    records: Mapping[str, Record]
    unions: Mapping[str, Shape]
    """Named unions; each refers only to records and earlier unions."""
    events: tuple[EventKind, ...]
    """Every event in every version that clients may receive."""
    failures: Mapping[str, Record]
    aliases: tuple[Alias, ...]


def compile_contract(endpoints: Iterable[Endpoint]) -> Contract:
    table = tuple(endpoints)
    shapes = ShapeTable(ALIASES)
    _add_events(shapes)
    operations = tuple(_operation(endpoint, shapes) for endpoint in table)
    kinds = {kind for endpoint in table for kind in endpoint.failures}
    return Contract(
        operations=operations,
        records=dict(sorted(shapes.records.items())),
        unions=shapes.aliases,
        events=(
            *(EventKind(name, shape, False) for shape, name in LIVE_TYPES.items()),
            *(EventKind(it.type, it.shape, True, it.followed) for it in manifest.DEFINITIONS),
        ),
        failures=failure_records(kinds),
        aliases=ALIASES,
    )


def _operation(endpoint: Endpoint, shapes: ShapeTable) -> Operation:
    public = public_name(endpoint.operation_id)
    parameters = tuple(_parameters(endpoint, public, shapes))
    if len({parameter.name for parameter in parameters}) < len(parameters):
        raise ValueError(f"{endpoint.operation_id} has two parameters of one name")
    return Operation(
        id=endpoint.operation_id,
        tag=endpoint.group,
        public=public,
        method=endpoint.method,
        path=endpoint.path,
        parameters=parameters,
        params=endpoint.params,
        query=endpoint.query,
        body=endpoint.body,
        success=_outcome(endpoint, shapes),
        failures=tuple(_failures(endpoint.failures)),
    )


def _parameters(endpoint: Endpoint, public: PublicName, shapes: ShapeTable) -> Iterable[Parameter]:
    decoded = {"sessionID": SessionID} | _decoded(endpoint.params)
    for wire in re.findall(r"\{(\w+)\}", endpoint.path):
        yield Parameter(
            name=_words(wire),
            wire=wire,
            place="path",
            required=True,
            leading=True,
            encoded=_STRING,
            decoded=decoded.get(wire, str),
        )
    if endpoint.body is not None:
        yield from _members(endpoint.body, "body", public, shapes)
    if endpoint.query is not None:
        yield from _members(endpoint.query, "query", public, shapes)
    if endpoint.scope == "location":
        yield from map(_location, _LOCATION)


def _members(
    payload: type[Payload], place: Place, public: PublicName, shapes: ShapeTable
) -> Iterable[Parameter]:
    decoded = _decoded(payload)
    names = dict(zip(payload.__struct_encode_fields__, payload.__struct_fields__, strict=True))
    for field in shapes.fields_of(payload):
        name = names[field.wire]
        yield Parameter(
            name=name,
            wire=field.wire,
            place=place,
            required=field.required,
            leading=field.required or name in public.leading,
            encoded=_without_null(field.shape),
            decoded=decoded[field.wire],
        )


def _location(name: str) -> Parameter:
    return Parameter(
        name=name,
        wire=f"location[{name}]",
        place="location",
        required=False,
        leading=False,
        encoded=_STRING,
        decoded=str | None,
    )


def _outcome(endpoint: Endpoint, shapes: ShapeTable) -> Outcome:
    success = endpoint.success
    match success.kind:
        case "live_stream":
            encoded: Shape | None = Ref(LIVE_EVENT)
        case "durable_stream" | "history":
            encoded = Ref(DURABLE_EVENT)
        case "data" | "location_data" | "bare" | "page" | "no_content" | "content" | "websocket":
            encoded = None if success.type is None else shapes.shape_of(success.type)
    return Outcome(kind=success.kind, encoded=encoded, decoded=success.type)


def _failures(kinds: Iterable[type[DomainError]]) -> Iterable[Failure]:
    return dict.fromkeys(Failure(kind.tag, STATUS_BY_ERROR[kind]) for kind in kinds)


def _add_events(shapes: ShapeTable) -> None:
    """Add every event with its envelope, discriminated by `type`."""
    integer = Scalar("integer")
    place = Record(
        "DurablePlace",
        (
            Field("aggregateID", _STRING, required=True),
            Field("seq", integer, required=True),
            Field("version", integer, required=True),
        ),
        "Position of an event in the log of its Session.",
    )
    at = Field("durable", shapes.add(place), required=True)
    current = [it for it in manifest.DEFINITIONS if manifest.BY_SHAPE[it.shape] is it]
    durable = {item: _event(item.type, item.shape, shapes, at) for item in current}
    followed = tuple(event for item, event in durable.items() if item.followed)
    named = shapes.name(DURABLE_EVENT, OneOf(followed))
    others = tuple(event for item, event in durable.items() if not item.followed)
    live = tuple(_event(name, shape, shapes) for shape, name in LIVE_TYPES.items())
    shapes.name(LIVE_EVENT, OneOf((*live, *others, named)))


def _event(name: str, shape: type[Value], shapes: ShapeTable, *more: Field) -> Ref:
    fields = (
        Field("id", _STRING, required=True),
        Field("type", Choice((name,)), required=True),
        *more,
        Field("location", shapes.shape_of(LocationRef), required=False),
        Field("data", shapes.shape_of(shape), required=True),
    )
    return shapes.add(Record(f"{shape.__name__}Event", fields, f"`{name}`."))


def _decoded(payload: type[Payload] | None) -> dict[str, JsonValue]:
    """Wire name -> the type of the decoded value."""
    if payload is None:
        return {}
    hints = get_type_hints(payload, include_extras=True)
    names = zip(payload.__struct_encode_fields__, payload.__struct_fields__, strict=True)
    return {wire: hints[field] for wire, field in names}


def _without_null(shape: Shape) -> Shape:
    """`shape` without null, because omitting a parameter means the same."""
    if not isinstance(shape, OneOf):
        return shape
    options = tuple(option for option in shape.options if option != Scalar("null"))
    return options[0] if len(options) == 1 else OneOf(options)


def _words(wire: str) -> str:
    """`sessionID` -> `session_id`."""
    return _IDS.sub(lambda found: f"_{found[0].lower()}", wire).removeprefix("_")
