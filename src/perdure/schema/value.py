"""The two kinds of data: values, which never change, and state, which one owner changes.

Both are Structs rather than dataclasses: the standard library compiles code for every dataclass at
import, which for a program of this size costs as much as the rest of its start (ADR 0009).
A value may be compared, hashed and shared freely. What crosses a boundary is a `codec.Record`.
"""

from typing import TYPE_CHECKING, dataclass_transform

import msgspec

if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
    class FrozenMeta(msgspec.StructMeta):
        """Says to type checkers what msgspec inherits anyway: a subclass is frozen too."""
else:
    FrozenMeta = msgspec.StructMeta


class Value(msgspec.Struct, metaclass=FrozenMeta, frozen=True):
    """Stays inside the program, and never changes."""


class State(msgspec.Struct, eq=False):
    """Changed by the one that owns it. Two of them are never the same."""


class Confidential(Value):
    """May hold a secret. Printing it, in a log or a traceback, shows only what kind it is."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
