"""OpenRouter's reasoning details: the reasoning of any provider in one list, to be returned whole.

They are streamed in pieces. Pieces of one detail have the same type and index; their texts are
joined, and other fields are those of the latest piece.
"""

from typing import Final

from msgspec import field

from perdure.llm.encoding import provider_json, shared
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State

_JOINED: Final = ("text", "summary", "data")


class _Detail(State):
    fields: JsonObject
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, piece: JsonObject) -> None:
        for name, value in piece.items():
            if name in _JOINED and isinstance(value, str):
                self.texts.setdefault(name, []).append(value)
            if value is not None or name not in self.fields:
                self.fields[name] = value

    def whole(self) -> JsonObject:
        return self.fields | {name: "".join(pieces) for name, pieces in self.texts.items()}


class ReasoningDetails(State):
    """The details of an answer so far."""

    details: list[_Detail] = field(default_factory=list[_Detail])

    def add(self, pieces: JsonValue) -> None:
        """Add streamed pieces; what is no object is ignored."""
        for piece in filter(shared.is_object, shared.elements(pieces)):
            if not self.details or not _is_continued(self.details[-1].fields, piece):
                self.details.append(_Detail({}))
                provider_json.require_few(self.details, "reasoning details")
            self.details[-1].add(piece)

    def take(self) -> list[JsonObject]:
        """The details, which are then no longer held."""
        taken, self.details = self.details, []
        return [detail.whole() for detail in taken]


def _is_continued(detail: JsonObject, piece: JsonObject) -> bool:
    index = piece.get("index")
    if detail.get("type") != piece.get("type") or detail.get("index") != index:
        return False
    # Without an index, a second encrypted detail is one of its own.
    if index is None and piece.get("type") == "reasoning.encrypted":
        return False
    ids = (detail.get("id"), piece.get("id"))
    return None in ids or ids[0] == ids[1]
