"""Session History ready to be sent: translated and encoded once, then extended.

A turn reads only the messages committed since the last one; the rest is kept as runs whose bytes
never change. Bounded by bytes over all Sessions, least recently used first; a cold Session is
rebuilt from its rows. Kept history is dropped whenever its cut, its model, the way to it or its
lease changes, a revert took the end of it away, something in it was pruned, excluded or restored,
or it is to be sent without native parts.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, field

from perdure.core import limits
from perdure.core.request import conversation, history_to_llm, message_media, token_budget
from perdure.core.request.conversation import Conversation
from perdure.core.request.media_limits import MediaLimits
from perdure.core.request.token_budget import ConversationSize
from perdure.core.session import omission
from perdure.core.session.history import Cut
from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import LLMMessage, Segment, split_segments
from perdure.ports import Transaction
from perdure.schema.ids import Seq, SessionID
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session.event import MessageExcluded, MessageRestored, ToolPruned
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.value import State, Value
from perdure.store.log.event_store import NO_EVENTS, has_event_since
from perdure.store.tables import message_table
from perdure.store.tables.message_table import MessageRow

_PLAIN: Final = b'"plain":true'


class MediaSent(State):
    """Whether a conversation has media, and how it was last sent (runtime.turn.media)."""

    there: bool = False
    takes: MediaLimits | None = None
    left_out: int = 0

    def changed(self, takes: MediaLimits, left_out: int) -> bool:
        """Whether what is kept of the last request was made in another way."""
        before = (self.takes, self.left_out)
        self.takes, self.left_out = takes, left_out
        return before != (takes, left_out)


class _Kept(State):
    cut: Cut
    said: Conversation
    last: Seq = NO_EVENTS
    plain_until: Seq = NO_EVENTS
    """The answers up to here are sent without their native parts."""
    runs: list[Segment] = field(default_factory=list[Segment])
    conversation: EncodedHistory = field(default_factory=EncodedHistory)
    tokens: ConversationSize = field(default_factory=ConversationSize)
    media: MediaSent = field(default_factory=MediaSent)
    size: int = 0


class History(Value):
    """What a turn sends: the runs, the bytes they had in earlier turns, and their size."""

    runs: tuple[Segment, ...]
    kept: EncodedHistory
    tokens: ConversationSize = field(default_factory=ConversationSize)
    media: MediaSent = field(default_factory=MediaSent)


class HistoryCache:
    def __init__(self, *, bytes_max: int = limits.HISTORY_CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[SessionID, _Kept] = OrderedDict()
        self._size = 0

    async def load(
        self,
        tx: Transaction,
        session_id: SessionID,
        *,
        cut: Cut,
        model: ModelRef,
        route: StepRoute | None = None,
        plain: bool = False,
    ) -> History:
        """The conversation up to now. Every message in it must be settled.

        `plain`: without the native parts of any answer so far.
        """
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._size -= kept.size
        fresh: list[MessageRow] | None = None
        if kept is not None and _is_for(kept, cut, model, route):
            fresh = await _load_fresh(tx, session_id, kept)
        if kept is None or fresh is None or not _stays_plain(kept, fresh, plain=plain):
            kept = _Kept(cut, Conversation(model, route))
            fresh = await message_table.list_after(tx, session_id, NO_EVENTS)
            _stays_plain(kept, fresh, plain=plain)
        _extend(kept, fresh)
        # What is left out here is left out of later requests only if a recorded step says so.
        if not plain:
            self._kept[session_id] = kept
            self._size += kept.size
            self._evict()
        return History(tuple(kept.runs), kept.conversation, kept.tokens, kept.media)

    def drop(self, session_id: SessionID) -> None:
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._size -= kept.size

    def _evict(self) -> None:
        # The Session that was just used stays, whatever its size: it is about to be sent.
        while self._size > self._bytes_max and len(self._kept) > 1:
            _, kept = self._kept.popitem(last=False)
            self._size -= kept.size


def _is_for(kept: _Kept, cut: Cut, model: ModelRef, route: StepRoute | None) -> bool:
    said = kept.said
    return kept.cut == cut and said.model.same_model(model) and said.route == route


def _stays_plain(kept: _Kept, fresh: list[MessageRow], *, plain: bool) -> bool:
    """Note up to where native parts are left out; False if some are kept that must not be sent."""
    until = fresh[-1].seq if plain and fresh else kept.last if plain else plain_until(fresh)
    if until == NO_EVENTS or until <= kept.plain_until:
        return True
    is_plain = kept.last <= kept.plain_until
    kept.plain_until = until
    return is_plain


def plain_until(rows: Sequence[MessageRow]) -> Seq:
    """The last row before a step that was sent without native parts; NO_EVENTS if there is none."""
    for row in reversed(rows):
        # Most rows are not decoded for this: a conversation may be large.
        if _PLAIN in row.stored and conversation.begins_plain(row.message()):
            return Seq(row.seq - 1)
    return NO_EVENTS


async def _load_fresh(
    tx: Transaction, session_id: SessionID, kept: _Kept
) -> list[MessageRow] | None:
    """The messages since the last one that is kept; None if what is kept has changed.

    A revert takes messages from the end, and no sequence is given twice: where the last message
    is, all before it are. Whichever process committed a change, the store tells.
    """
    if kept.last == NO_EVENTS:
        return await message_table.list_after(tx, session_id, NO_EVENTS)
    if await has_event_since(
        tx, session_id, kept.last, ToolPruned, MessageExcluded, MessageRestored
    ):
        return None
    return await message_table.list_following(tx, session_id, kept.last)


def _extend(kept: _Kept, rows: list[MessageRow]) -> None:
    fresh: list[LLMMessage] = []
    for row in rows:
        kept.last = row.seq
        if kept.cut.shows(seq=row.seq, type=row.type):
            message = row.message()
            lowered = kept.said.lower(message, native=row.seq > kept.plain_until)
            fresh.extend(lowered)
            kept.media.there = kept.media.there or message_media.has_media(lowered)
            kept.tokens = measured(kept.tokens, message, lowered, model=kept.said.model)
            # Rows, lowered values and wire bytes are each about the size of the row.
            kept.size += 3 * len(row.stored)
    if not fresh:
        return
    # The last run may go on: a second prompt before any answer joins the first.
    open_run = kept.runs.pop().messages if kept.runs else ()
    kept.runs.extend(split_segments((*open_run, *fresh)))


def measured(
    before: ConversationSize,
    message: SessionMessage,
    lowered: tuple[LLMMessage, ...],
    *,
    model: ModelRef,
) -> ConversationSize:
    """The size of a conversation with one message more, for that model."""
    sent = token_budget.estimate_messages(lowered)
    grown = before.plus(sent)
    if (
        isinstance(message, AssistantMessage)
        and message.tokens is not UNSET
        and message.model.same_model(model)
        and token_budget.total_tokens(message.tokens) > 0
    ):
        grown = grown.counted(
            message.tokens,
            since=token_budget.estimate_results(lowered),
            at=message.time.completed or message.time.created,
        )
    omitted_at = omission.omitted_at(message)
    if omitted_at is None:
        return grown
    whole = history_to_llm.lower(omission.whole(message), model)
    return grown.without(token_budget.estimate_messages(whole) - sent, at=omitted_at)
