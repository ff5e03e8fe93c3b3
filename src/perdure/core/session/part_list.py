"""The parts of one assistant message while events change them.

A part is found by its kind and id without a search, because an answer may have thousands of parts
and thousands of events that change them. Provider ids may repeat inside one message: the last part
with an id is the one that is changed.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from perdure.schema.session.message import AssistantPart, ReasoningPart, TextPart, ToolPart

PartT = TypeVar("PartT", TextPart, ReasoningPart, ToolPart)


class PartList:
    def __init__(self, content: tuple[AssistantPart, ...]) -> None:
        self._parts = list(content)
        self._places = {(type(part), part.id): place for place, part in enumerate(content)}

    @property
    def content(self) -> tuple[AssistantPart, ...]:
        return tuple(self._parts)

    def add(self, part: AssistantPart) -> None:
        self._places[type(part), part.id] = len(self._parts)
        self._parts.append(part)

    def find(self, kind: type[AssistantPart], id: str) -> AssistantPart | None:
        """The last part of that kind and id."""
        place = self._places.get((kind, id))
        return None if place is None else self._parts[place]

    def change(self, kind: type[PartT], id: str, change: Callable[[PartT], PartT]) -> None:
        """Change the last part of that kind and id; a part that is not there stays so."""
        place = self._places.get((kind, id))
        if place is not None:
            self._parts[place] = change(cast("PartT", self._parts[place]))
