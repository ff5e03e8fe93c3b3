"""Calls whose answers are decoded and checked against the contract.

A declared failure is raised as its class of `schema.errors`. A failure that this version has no
class for, and an answer that does not fit the contract, is a ClientError.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Generic, TypedDict, TypeVar, Unpack

import msgspec

from perdure.client.errors import ClientError, WireError
from perdure.client.pages import History
from perdure.client.typed_events import DurableEvent, Envelope, LiveEvent, durable_event, live_event
from perdure.client.wire import Call, CallOptions, Wire
from perdure.protocol import errors
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Payload, Record
from perdure.schema.page import Page

T = TypeVar("T")


class TypedCall(TypedDict, total=False):
    """What a call carries besides its method and its path."""

    query: Payload
    body: Payload
    location: tuple[str | None, str | None]
    """Directory and workspace."""
    patient: bool
    options: CallOptions | None


class TypedWire:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def data(
        self, kind: JsonValue, method: str, path: str, **call: Unpack[TypedCall]
    ) -> JsonValue:
        """The value below `data`, decoded as `kind`."""
        return (await self.bare(_Data[kind], method, path, **call)).data

    async def bare(
        self, kind: JsonValue, method: str, path: str, **call: Unpack[TypedCall]
    ) -> JsonValue:
        with _declared():
            answer = await self._wire.json(method, path, **_spelled(call))
        return _decoded(kind, answer)

    async def page(
        self, kind: JsonValue, method: str, path: str, **call: Unpack[TypedCall]
    ) -> Page[JsonValue]:
        answer = await self.bare(_Paged[kind], method, path, **call)
        return Page(items=answer.data, previous=answer.cursor.previous, next=answer.cursor.next)

    async def history(
        self, method: str, path: str, **call: Unpack[TypedCall]
    ) -> History[DurableEvent]:
        answer: _History = await self.bare(_History, method, path, **call)
        with _checked():
            items = tuple(durable_event(envelope) for envelope in answer.data)
        return History(items=items, has_more=answer.has_more)

    async def done(self, method: str, path: str, **call: Unpack[TypedCall]) -> None:
        with _declared():
            await self._wire.done(method, path, **_spelled(call))

    async def content(self, path: str, **call: Unpack[TypedCall]) -> bytes:
        with _declared():
            return await self._wire.content(path, **_spelled(call))

    def socket_url(self, path: str, **call: Unpack[TypedCall]) -> str:
        return self._wire.socket_url(path, query=_spelled(call).get("query", {}))

    async def durable_events(
        self, path: str, **call: Unpack[TypedCall]
    ) -> AsyncGenerator[DurableEvent]:
        with _declared():
            async for data in self._wire.frames(path, **_spelled(call)):
                with _checked():
                    event = durable_event(_decoded(Envelope, data))
                yield event

    async def live_events(self, path: str, **call: Unpack[TypedCall]) -> AsyncGenerator[LiveEvent]:
        with _declared():
            async for data in self._wire.frames(path, **_spelled(call)):
                with _checked():
                    event = live_event(_decoded(Envelope, data))
                yield event


class _Data(Record, Generic[T]):
    data: T


class _Links(Record):
    previous: str | None = None
    next: str | None = None


class _Paged(Record, Generic[T]):
    data: tuple[T, ...]
    cursor: _Links


class _History(Record):
    data: tuple[Envelope, ...]
    has_more: bool


def _spelled(call: TypedCall) -> Call:
    directory, workspace = call.get("location", (None, None))
    query = call.get("query")
    asked: JsonObject = {} if query is None else codec.to_json_value(query)
    spelled = Call(
        query={**asked, "location[directory]": directory, "location[workspace]": workspace},
        patient=call.get("patient", False),
        options=call.get("options"),
    )
    if "body" in call:
        spelled["body"] = call["body"]
    return spelled


@contextmanager
def _declared() -> Generator[None]:
    try:
        yield
    except WireError as error:
        kind = errors.read(error.value)
        if kind is None:
            raise ClientError("unexpected-status", str(error), status=error.status) from error
        raise kind from error


@contextmanager
def _checked() -> Generator[None]:
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ClientError("malformed-response", f"The answer does not fit: {error}") from error


def _decoded(kind: JsonValue, answer: bytes) -> JsonValue:
    with _checked():
        return codec.decode(kind, answer)
