"""Symbols: the places that a language server names for a search in the whole project.

Invariant: reading never fails, whatever a server answers; what is no symbol is left out.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from perdure.core import limits
from perdure.core.language_server.diagnostic import Count, path_of
from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value


class Position(Value):
    """Counted from 0."""

    line: Count
    character: Count


class SymbolRange(Value):
    start: Position
    end: Position


class Symbol(Value):
    name: str
    kind: int
    """As the Language Server Protocol numbers kinds."""
    path: str
    range: SymbolRange


def parse_symbols(answer: JsonValue) -> tuple[Symbol, ...]:
    """The symbols of files in an answer to `workspace/symbol`."""
    listed = answer[: limits.LSP_SYMBOLS_READ_MAX] if jsonc.is_list(answer) else []
    return tuple(filter(None, map(_symbol, listed)))


class _Location(Value):
    uri: str
    range: SymbolRange


class _Symbol(Value):
    name: Annotated[str, Meta(max_length=1_000)]
    kind: Count
    location: _Location


def _symbol(item: JsonValue) -> Symbol | None:
    try:
        decoded = codec.convert(_Symbol, item)
    except msgspec.ValidationError:
        return None
    path = path_of(decoded.location.uri)
    if path is None:
        return None
    return Symbol(decoded.name, decoded.kind, path, decoded.location.range)
