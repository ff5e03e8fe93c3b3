"""Finds what answers at a path, in a tree of path segments; a literal segment beats a parameter.

Parameters are percent-decoded after splitting, so an encoded slash is part of a value. A `*` at
the end takes the rest of the path. One slash at the end is ignored.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from perdure.protocol.query import unquote
from perdure.schema.value import State, Value

T = TypeVar("T")


class Match(Value, Generic[T]):
    """All targets at one path, by method, with the values of the path's parameters."""

    by_method: Mapping[str, T]
    params: Mapping[str, str]


class Routes(Generic[T]):
    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, method: str, path: str, target: T) -> None:
        node = self._root
        names: list[str] = []
        for segment in path.strip("/").split("/"):
            if segment == "*":
                names.append(segment)
                node.rest = node.rest or _Node()
                node = node.rest
            elif segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment.encode(), _Node())
        if method in node.by_method:
            raise ValueError(f"two endpoints at {method} {path}")
        node.by_method[method] = target
        node.names = tuple(names)

    def match(self, path: bytes) -> Match[T] | None:
        values: list[bytes] = []
        node = self._root
        segments = path.removesuffix(b"/")[1:].split(b"/")
        for index, segment in enumerate(segments):
            following = node.literals.get(segment)
            if following is None and segment and node.parameter is not None:
                following = node.parameter
                values.append(segment)
            if following is None and node.rest is not None:
                node = node.rest
                values.append(b"/".join(segments[index:]))
                break
            if following is None:
                return None
            node = following
        if not node.by_method:
            return None
        return Match(node.by_method, dict(zip(node.names, map(unquote, values), strict=True)))


class _Node(State, Generic[T]):
    literals: "dict[bytes, _Node[T]]" = msgspec.field(default_factory=dict[bytes, "_Node[T]"])
    parameter: "_Node[T] | None" = None
    rest: "_Node[T] | None" = None
    by_method: dict[str, T] = msgspec.field(default_factory=dict[str, T])
    names: tuple[str, ...] = ()
