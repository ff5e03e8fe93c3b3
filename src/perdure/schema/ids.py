"""Identifiers: a prefix for the kind, then a body.

A generated body is 26 characters: 12 hex digits of time (milliseconds times 16 plus a counter, 48
bits, good until the year 2527) and 14 characters of `[0-9A-Za-z]` entropy. Session ids count time
downwards, so that the newest sorts first. Order between records always comes from `seq`, never
from an id. Ids made by callers are accepted within a bounded alphabet and length.
"""

import hashlib
from typing import Annotated, Final, NewType

from msgspec import Meta

from perdure.lazy_pattern import lazy_pattern

SessionID = NewType("SessionID", str)
MessageID = NewType("MessageID", str)
EventID = NewType("EventID", str)
ToolCallID = NewType("ToolCallID", str)
PermissionID = NewType("PermissionID", str)
QuestionID = NewType("QuestionID", str)
PtyID = NewType("PtyID", str)
JobID = NewType("JobID", str)
WorkspaceID = NewType("WorkspaceID", str)
ProjectID = NewType("ProjectID", str)
Seq = NewType("Seq", int)

BODY_CHARS_MAX: Final = 124
_BODY: Final = rf"[0-9A-Za-z_.-]{{1,{BODY_CHARS_MAX}}}"
# A lone `$` would allow one line break at the end.
_END: Final = r"$(?!\n)"

SuppliedSessionID = Annotated[SessionID, Meta(pattern=f"^ses_{_BODY}{_END}")]
SuppliedMessageID = Annotated[MessageID, Meta(pattern=f"^msg_{_BODY}{_END}")]
SuppliedPermissionID = Annotated[PermissionID, Meta(pattern=f"^per_{_BODY}{_END}")]
SuppliedQuestionID = Annotated[QuestionID, Meta(pattern=f"^que_{_BODY}{_END}")]
SuppliedPtyID = Annotated[PtyID, Meta(pattern=f"^pty_{_BODY}{_END}")]
SuppliedJobID = Annotated[JobID, Meta(pattern=f"^job_{_BODY}{_END}")]
SuppliedWorkspaceID = Annotated[WorkspaceID, Meta(pattern=f"^wrk_{_BODY}{_END}")]

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_BASE: Final = len(_PAIRS)
_LOWER_SPAN: Final = _BASE**3
ENTROPY_SPAN: Final = _BASE**7
TICKS_PER_MILLI: Final = 16
_TICK_MASK: Final = (1 << 48) - 1
_TIME_DIGITS: Final = 12
_COPY_DIGITS: Final = 32
_WELL_FORMED: Final = {
    prefix: lazy_pattern(f"{prefix}_{_BODY}")
    for prefix in ("ses", "msg", "evt", "per", "que", "wrk")
}


def compose(prefix: str, *, tick: int, entropy: int, descending: bool = False) -> str:
    """An id of `prefix` from a time tick and `entropy` in `range(ENTROPY_SPAN)`."""
    bits = (~tick if descending else tick) & _TICK_MASK
    return f"{prefix}_{bits:012x}{_base62(entropy)}"


def well_formed(prefix: str, text: str) -> bool:
    """Whether `text` is a valid id of this kind, generated here or by a caller."""
    return _WELL_FORMED[prefix].fullmatch(text) is not None


def session_from_external(key: str) -> SessionID:
    """The Session id of an external conversation; the same key gives the same id."""
    return SessionID(_from_external("ses", key))


def message_from_external(key: str) -> MessageID:
    """The message id of an external input, so that a redelivered prompt is a retry."""
    return MessageID(_from_external("msg", key))


def copied_message(message_id: MessageID, *, into: SessionID) -> MessageID:
    """The id of a message's copy in another Session: deterministic, with the same time."""
    digest = hashlib.sha256(f"{into}\x00{message_id}".encode()).hexdigest()
    body = message_id.partition("_")[2]
    return MessageID(f"msg_{body[:_TIME_DIGITS]}{digest[:_COPY_DIGITS]}")


def _from_external(prefix: str, key: str) -> str:
    # The prefix is hashed too, so that one key for two kinds gives unrelated bodies.
    digest = hashlib.sha256(f"{prefix}\x00{key}".encode()).hexdigest()
    return f"{prefix}_{digest}"


def _base62(entropy: int) -> str:
    # Two halves that fit a machine word: dividing a larger number is several times slower.
    upper, lower = divmod(entropy, _LOWER_SPAN)
    lower, a = divmod(lower, _BASE)
    c, b = divmod(lower, _BASE)
    upper, d = divmod(upper, _BASE)
    upper, e = divmod(upper, _BASE)
    g, f = divmod(upper, _BASE)
    pairs = _PAIRS
    return pairs[g] + pairs[f] + pairs[e] + pairs[d] + pairs[c] + pairs[b] + pairs[a]
