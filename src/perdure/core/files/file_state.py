"""The state of one path: what is there, as far as it can be put back.

A regular file is its content, by digest, and its permission bits; a link is where it points. What
cannot be put back has a state too: `other` (a directory, a device) and `unknown` (too large, or not
looked at in time). Nothing here looks at a disk.

Invariant: two states are `same` only if putting one where the other is would change nothing.
"""

import hashlib
from typing import Final, Literal, cast, get_args

from perdure.schema.value import Value

Kind = Literal["absent", "file", "link", "other", "unknown"]
_DIGEST_BYTES: Final = 20
_NO_MODE: Final = "-"


class FileState(Value):
    kind: Kind
    digest: str = ""
    mode: int | None = None
    """The permission bits of a file; None where they are not known beforehand."""

    @property
    def is_kept(self) -> bool:
        """Whether it can be put back."""
        return self.kind in ("absent", "file", "link")

    @property
    def has_content(self) -> bool:
        return self.kind in ("file", "link")

    def same(self, other: "FileState") -> bool:
        if not self.is_kept or self.kind != other.kind or self.digest != other.digest:
            return False
        return None in (self.mode, other.mode) or self.mode == other.mode


ABSENT: Final = FileState("absent")
OTHER: Final = FileState("other")
UNKNOWN: Final = FileState("unknown")


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def encode(state: FileState) -> str:
    """As it is stored."""
    if not state.has_content:
        return state.kind
    mode = _NO_MODE if state.mode is None else f"{state.mode:o}"
    return f"{state.kind} {mode} {state.digest}"


def decode(text: str) -> FileState:
    """The inverse of `written`. Raises ValueError."""
    kind, _, rest = text.partition(" ")
    if kind not in get_args(Kind):
        raise ValueError(f"not the state of a file: {text!r}")
    if not rest:
        return FileState(cast("Kind", kind))
    mode, _, digest = rest.partition(" ")
    return FileState(cast("Kind", kind), digest, None if mode == _NO_MODE else int(mode, 8))
