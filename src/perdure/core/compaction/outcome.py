"""The outcomes of a compaction, and the reasons that are told when it could not help."""

from functools import partial
from typing import Final, Literal

from msgspec import UNSET

from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.compaction import CompactionReason, CompactionReported
from perdure.schema.value import Value

INTERRUPTED: Final = "Compaction was interrupted"
CUT_OFF: Final = "The server stopped before the compaction was complete"
STILL_TOO_LARGE: Final = (
    "The conversation is too large for this model, and condensing it does not help any more."
    " Choose a model with a larger context, or go on in a new Session."
)


class Compacted(Value, kw_only=True):
    """The next Provider Turn is sent less."""

    by: Literal["pruned", "summarised"]
    tokens_before: int
    """Estimated size of the whole request."""
    tokens_after: int
    results: int = 0
    """The number of pruned results."""
    note: str = ""
    """Why it was not summarised although that was tried."""


class NothingToCompact(Value):
    """Nothing was done, and nothing failed."""

    reason: str
    tokens: int = 0
    """Estimated size of the whole request."""


class CompactionFailed(Value):
    """No checkpoint was made. The reason is shown to the person who asked."""

    reason: str


CompactionOutcome = Compacted | NothingToCompact | CompactionFailed


def report(
    session_id: SessionID, ended: CompactionOutcome, *, reason: CompactionReason, now: int
) -> CompactionReported | None:
    """The event of a compaction that made no checkpoint; None for one whose checkpoint says it."""
    make = partial(CompactionReported, timestamp=now, session_id=session_id, reason=reason)
    match ended:
        case Compacted(by="summarised"):
            return None
        case Compacted(tokens_before=before, tokens_after=after, results=results, note=note):
            return make(
                outcome="pruned",
                note=note or UNSET,
                tokens_before=before,
                tokens_after=after,
                results=results,
            )
        case NothingToCompact(reason=note, tokens=tokens):
            return make(outcome="nothing", note=note, tokens_before=tokens, tokens_after=tokens)
        case CompactionFailed(reason=note):
            return make(outcome="failed", note=note)


class WindowUse(Value, kw_only=True):
    """The window of a model, and what of it is the same in every request."""

    model: str
    window: int
    fixed: int
    """System Context and tool definitions."""


def short_conversation(tokens: int, keep_tokens: int) -> str:
    return (
        f"The conversation has about {tokens:,} tokens, and a compaction leaves the newest"
        f" {keep_tokens:,} as they are (`compaction.keep.tokens`); no older tool result is large"
        " enough to be pruned"
    )


def no_gain(tokens: int) -> str:
    return (
        f"The conversation has about {tokens:,} tokens, and a checkpoint would not be smaller: the"
        " newest messages and your own words stay as they are. Nothing was changed"
    )


def large_message(session_id: SessionID, message_id: MessageID, tokens: int, use: WindowUse) -> str:
    """Why a request with this message cannot be made small enough."""
    return (
        f"Message {message_id} alone has about {tokens:,} tokens. A request to {use.model} takes"
        f" {use.window:,}, of which instructions and tools use {use.fixed:,}. Send less text, or"
        " save it as a file that the model can read in parts; leave this message out with"
        f" `perdure context {session_id} --exclude {message_id}`; or choose a model with a larger"
        " context."
    )


def large_fixed_part(use: WindowUse) -> str:
    """Why no compaction can make a request small enough."""
    return (
        f"Instructions and tools alone have about {use.fixed:,} tokens, and a request to"
        f" {use.model} takes {use.window:,}. Shorten the instruction files, deny tools that are not"
        " needed, or choose a model with a larger context."
    )


def large_conversation(
    session_id: SessionID, largest: tuple[MessageID, int] | None, use: WindowUse
) -> str:
    """Why a conversation that was compacted is still too large."""
    if largest is None:
        return STILL_TOO_LARGE
    message_id, tokens = largest
    return (
        f"{STILL_TOO_LARGE} The largest message is {message_id} with about {tokens:,} of"
        f" {use.window:,} tokens; leave it out with"
        f" `perdure context {session_id} --exclude {message_id}`."
    )
