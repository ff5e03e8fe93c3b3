"""Carries out core.compaction: ask the model for a summary and record it as the new checkpoint.

The caller makes sure that nothing else runs for the Session. Only the end of a compaction changes
what the model is shown; one that fails or is interrupted leaves its beginning in the log and
everything else as it was. Usage of the summary request is not counted in the Session's totals.
"""

from collections.abc import AsyncGenerator, Sequence

from perdure.core import compaction, limits
from perdure.core.compaction import (
    Compacted,
    CompactionFailed,
    CompactionOutcome,
    NothingToCompact,
    Selection,
)
from perdure.core.history import Cut
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError, TextDelta
from perdure.llm.message import LLMMessage, Run, TextPart
from perdure.llm.request import GenerationControls, LLMRequest
from perdure.location.catalog import ResolvedModel
from perdure.ports import Transaction
from perdure.runtime import model_choice, tenure
from perdure.runtime.concurrency import shielded
from perdure.runtime.model_choice import NotChosen
from perdure.runtime.run_services import RunServices
from perdure.runtime.tenure import Tenures
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.live_event import CompactionDelta
from perdure.schema.message import SessionMessage
from perdure.schema.session import SessionInfo
from perdure.schema.session_event import CompactionEnded, CompactionReason, CompactionStarted
from perdure.store import epoch_table, message_table, session_table
from perdure.store.lease_table import LeaseHeldError


class Compactor:
    def __init__(self, services: RunServices, tenures: Tenures) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._tenures = tenures

    async def compact(
        self, session_id: SessionID, reason: CompactionReason = "manual"
    ) -> CompactionOutcome:
        """Raises CancelledError when interrupted; the old checkpoint then still holds."""
        try:
            async with self._tenures.enter(session_id):
                session = await self._store.database.read(
                    lambda tx: session_table.require(tx, session_id)
                )
                return await self._compact(session, reason)
        except LeaseHeldError:
            return CompactionFailed("Another process is running this Session")
        except InvalidRequestError as unusable:
            return CompactionFailed(unusable.message)

    async def _compact(self, session: SessionInfo, reason: CompactionReason) -> CompactionOutcome:
        history = await self._store.database.read(lambda tx: _history(tx, session.id))
        async with self._services.locations.hold(session.location) as location:
            keep_tokens = location.settings.compaction.keep_tokens
            selection = compaction.select(history, keep_tokens=keep_tokens)
            if selection is None:
                return NothingToCompact()
            chosen = model_choice.choose(session, location)
            if isinstance(chosen, NotChosen):
                return CompactionFailed(chosen.reason)
            asked = compaction.request_text(selection)
            if not compaction.fits(asked, chosen.model.limit):
                return CompactionFailed("The conversation is too long for this model to condense")
            message_id = await self._begin(session, reason)
            request = _request(session, chosen.model, asked)
            answer = await self._ask(session, message_id, chosen.model, request)
        if isinstance(answer, CompactionFailed):
            return answer
        await shielded(self._end(session, reason, message_id, selection, summary=answer))
        return Compacted()

    async def _begin(self, session: SessionInfo, reason: CompactionReason) -> MessageID:
        started = CompactionStarted(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=self._services.ids.message(),
            reason=reason,
        )
        await self._store.append(session.id, [started], location=session.location, running=True)
        return started.message_id

    async def _end(
        self,
        session: SessionInfo,
        reason: CompactionReason,
        message_id: MessageID,
        selection: Selection,
        *,
        summary: str,
    ) -> None:
        ended = CompactionEnded(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=message_id,
            reason=reason,
            text=summary,
            recent=selection.recent,
        )
        await self._store.append(session.id, [ended], location=session.location, running=True)

    # ---- the summary as it arrives --------------------------------------------------------------

    async def _ask(
        self, session: SessionInfo, message_id: MessageID, model: ResolvedModel, request: LLMRequest
    ) -> str | CompactionFailed:
        pieces: list[str] = []
        size = 0
        end: Finish | ProviderError | None = None
        stream = model.call(request)
        try:
            async for batch in stream:
                piece, end = _read(batch)
                size += len(piece)
                if size > limits.SUMMARY_CHARS_MAX:
                    return CompactionFailed("The summary is too long")
                if piece:
                    pieces.append(piece)
                    self._show(session, message_id, piece)
        except LLMError as error:
            return CompactionFailed(error.message)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        return _judged("".join(pieces), end)

    def _show(self, session: SessionInfo, message_id: MessageID, piece: str) -> None:
        delta = CompactionDelta(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=message_id,
            text=piece,
        )
        self._services.hub.publish(delta, session.location)


async def _history(tx: Transaction, session_id: SessionID) -> list[SessionMessage]:
    """Session History from the latest checkpoint on."""
    epoch = await epoch_table.get(tx, session_id)
    cut = Cut(
        await message_table.latest_compaction(tx, session_id),
        None if epoch is None else epoch.baseline_seq,
    )
    rows = await message_table.since(tx, session_id, await tenure.cut_floor(tx, session_id))
    return [row.message() for row in rows if cut.shows(seq=row.seq, type=row.type)]


def _request(session: SessionInfo, model: ResolvedModel, asked: str) -> LLMRequest:
    return LLMRequest(
        model=model.ref,
        system=(),
        runs=(Run((LLMMessage("user", (TextPart(asked),)),)),),
        generation=GenerationControls(max_tokens=compaction.summary_tokens(model.limit)),
        headers=model_choice.correlation(session.id),
    )


def _read(batch: Sequence[LLMEvent]) -> tuple[str, Finish | ProviderError | None]:
    """The text of a batch, and how the answer ended if it did."""
    text = "".join(event.text for event in batch if isinstance(event, TextDelta))
    ends = (event for event in batch if isinstance(event, Finish | ProviderError))
    return text, next(ends, None)


def _judged(summary: str, end: Finish | ProviderError | None) -> str | CompactionFailed:
    if end is None:
        return CompactionFailed("The answer ended before it was complete")
    if isinstance(end, ProviderError):
        return CompactionFailed(end.message)
    if not summary.strip():
        return CompactionFailed("The model answered without a summary")
    return summary
