"""Takes pages, histories and plain data out of the objects that carry them."""

from typing import Generic, TypeVar, cast

from perdure.client.errors import ClientError
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.page import Page
from perdure.schema.value import Value

T = TypeVar("T")


class History(Value, Generic[T], kw_only=True):
    """Durable events in their order, and whether the log holds later ones."""

    items: tuple[T, ...]
    has_more: bool


def data_of(envelope: JsonObject) -> JsonValue:
    """What `{data}` holds."""
    try:
        return envelope["data"]
    except KeyError as error:
        raise ClientError("malformed-response", "The answer holds no `data`") from error


def items_of(envelope: JsonObject) -> tuple[JsonValue, ...]:
    data = data_of(envelope)
    if not isinstance(data, list):
        raise ClientError("malformed-response", "`data` of the answer is not a list")
    return tuple(cast("list[JsonValue]", data))


def page_of(envelope: JsonObject) -> Page[JsonValue]:
    links = envelope.get("cursor")
    if not isinstance(links, dict):
        raise ClientError("malformed-response", "The answer holds no `cursor`")
    sides = cast("dict[str, str]", links)
    return Page(items=items_of(envelope), previous=sides.get("previous"), next=sides.get("next"))


def history_of(envelope: JsonObject) -> History[JsonValue]:
    return History(items=items_of(envelope), has_more=envelope.get("hasMore") is True)
