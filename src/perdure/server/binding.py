"""Endpoints joined to their handlers, once the types of each pair have been compared.

A handler says in its annotations what it takes and returns. They must be the Endpoint's: its
query, its body, and its result as a value or as JSON. The check runs when the app is made, so a
mismatch stops the start and no request meets it.
"""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Final, cast, get_args, get_origin

from perdure.protocol.endpoint import Endpoint, Success, SuccessKind
from perdure.schema.codec import Payload
from perdure.schema.files.fs import FileContent
from perdure.schema.value import Value
from perdure.server.call import Call, Handler, Handlers
from perdure.server.results import (
    DurableStream,
    Encoded,
    EncodedHistory,
    EncodedPage,
    LiveStream,
    NoContent,
    TerminalConnection,
)

Decoded = Payload | None
"""A query or a body: of the type that the Endpoint declares, None where it declares none."""

_CARRIERS: Final[Mapping[SuccessKind, object]] = {
    "page": EncodedPage,
    "history": EncodedHistory,
    "durable_stream": DurableStream,
    "live_stream": LiveStream,
}
"""Results that carry the Endpoint's type as their parameter."""
_WHOLE: Final[Mapping[SuccessKind, object]] = {
    "no_content": NoneType,
    "content": FileContent,
    "websocket": TerminalConnection,
}
"""Results of kinds that declare no type."""


class HandlerTypeError(TypeError):
    """A handler's annotations are not the types that its Endpoint declares."""

    def __init__(self, endpoint: Endpoint, handler: object, problem: str) -> None:
        module, name = getattr(handler, "__module__", "?"), getattr(handler, "__qualname__", "?")
        super().__init__(f"handler {module}.{name} of {endpoint.operation_id} {problem}")


class Binding(Value, kw_only=True):
    endpoint: Endpoint
    handler: Handler[Decoded, Decoded, object]


def bind_all(endpoints: Iterable[Endpoint], handlers: Handlers) -> tuple[Binding, ...]:
    """One Binding for each Endpoint.

    Raises ValueError when an Endpoint has no handler or a handler no Endpoint, and
    HandlerTypeError when their types differ.
    """
    by_id = {endpoint.operation_id: endpoint for endpoint in endpoints}
    if unmatched := by_id.keys() ^ handlers.keys():
        raise ValueError(f"endpoints and handlers do not match: {', '.join(sorted(unmatched))}")
    return tuple(_bind(endpoint, handlers[name]) for name, endpoint in by_id.items())


def _bind(endpoint: Endpoint, handler: object) -> Binding:
    # Read as they are: no handler quotes its annotations, and resolving quoted ones is slow.
    annotations: Mapping[str, object] = getattr(handler, "__annotations__", {})
    if (mismatch := _find_mismatch(endpoint, annotations)) is not None:
        raise HandlerTypeError(endpoint, handler, mismatch)
    # The comparison proves this, which a type checker cannot see.
    return Binding(endpoint=endpoint, handler=cast("Handler[Decoded, Decoded, object]", handler))


def _find_mismatch(endpoint: Endpoint, annotations: Mapping[str, object]) -> str | None:
    taken = [hint for name, hint in annotations.items() if name != "return"]
    if len(taken) != 1 or get_origin(taken[0]) is not Call or "return" not in annotations:
        return "must be annotated (Call[query, body]) -> result"
    query, body = get_args(taken[0])
    if query is not (endpoint.query or NoneType):
        return f"takes the query {_name(query)}; the Endpoint declares {_name(endpoint.query)}"
    if body is not (endpoint.body or NoneType):
        return f"takes the body {_name(body)}; the Endpoint declares {_name(endpoint.body)}"
    returned, success = annotations["return"], endpoint.success
    if not _fits(returned, success):
        declared = f"{success.kind} of {_name(success.type)}"
        return f"returns {_name(returned)}; the Endpoint declares {declared}"
    return None


def _fits(returned: object, success: Success) -> bool:
    """Whether an annotation is a result of this kind and type."""
    kind: object = success.type
    if success.kind in _WHOLE:
        if success.kind == "no_content" and returned is NoContent:
            return True
        return (NoneType if returned is None else returned) is _WHOLE[success.kind]
    carrier = _CARRIERS.get(success.kind)
    if carrier is None and returned == kind:
        return True
    return get_origin(returned) is (carrier or Encoded) and get_args(returned) == (kind,)


def _name(kind: object) -> str:
    if kind is None or kind is NoneType:
        return "None"
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
