"""The two kinds of data: immutable values, and state that one owner changes.

Both are Structs rather than dataclasses: the standard library compiles code for every dataclass at
import, which for a program of this size takes as long as the rest of its start (ADR 0009).
Values may be compared, hashed and shared freely. Data that crosses a boundary is a `codec.Record`.
"""

from typing import TYPE_CHECKING, dataclass_transform

import msgspec

if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
    class FrozenMeta(msgspec.StructMeta):
        """Tells type checkers that subclasses are frozen too, as msgspec implements it."""
else:
    FrozenMeta = msgspec.StructMeta


class Value(msgspec.Struct, metaclass=FrozenMeta, frozen=True):
    """Immutable data inside the program."""


class State(msgspec.Struct, eq=False):
    """Mutable data with one owner, compared by identity."""


class Confidential(Value):
    """A value that may contain a secret. Its repr shows only the type."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
