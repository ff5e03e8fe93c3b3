"""Asks a model for the summary of a compaction, in one request or in several.

A conversation that the model cannot read at once is read in parts, each with the summary so far.
Every request is bounded in time and size. Whatever goes wrong is an answer, not an exception; an
interrupt is one. What a request has cost is recorded with its end, whatever becomes of it.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec import UNSET

from perdure.core import limits
from perdure.core.compaction import summary_input, summary_request
from perdure.core.compaction.outcome import CompactionFailed
from perdure.core.compaction.plan import CompactionPlan
from perdure.core.compaction.summary_request import SummaryInstructions
from perdure.core.request import token_budget
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError, TextDelta, Usage
from perdure.llm.message import LLMMessage, Segment, TextPart
from perdure.llm.request import GenerationControls, LLMRequest
from perdure.location.agents.agents import COMPACTION
from perdure.location.location import Location
from perdure.location.models.catalog import ResolvedModel
from perdure.net.streams import close_stream
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import budget, model_choice
from perdure.runtime.turn.model_choice import ChosenModel
from perdure.runtime.turn.retries import with_retries
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import MessageID
from perdure.schema.live_event import CompactionDelta
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Confidential, Value

logger = logging.getLogger(__name__)

_TOO_LITTLE = "The model's context is too small to condense the conversation"


class SummaryModel(Confidential, kw_only=True):
    """Who is asked, and what is wanted."""

    model: ResolvedModel
    wish: SummaryInstructions
    believed: int = 0
    """What the model's context seems to be at most; 0 is no belief."""


def condenser(
    chosen: ChosenModel, location: Location, *, instruction: str = "", believed: int = 0
) -> SummaryModel | CompactionFailed:
    """The model of the hidden agent for this, if it names one; else that of the Session."""
    agent = location.agents.select(COMPACTION)
    if agent is None:
        return SummaryModel(
            model=chosen.model, wish=SummaryInstructions(instruction=instruction), believed=believed
        )
    guidance = "" if agent.system is UNSET else agent.system
    wish = SummaryInstructions(guidance=guidance, instruction=instruction)
    if agent.model is UNSET:
        return SummaryModel(model=chosen.model, wish=wish, believed=believed)
    model = location.catalog.resolve(agent.model, location.agents.options(agent.id).request)
    if not isinstance(model, ResolvedModel):
        return CompactionFailed(model.message)
    same = model.ref.same_model(chosen.model.ref)
    return SummaryModel(model=model, wish=wish, believed=believed if same else 0)


class _Said(Value):
    text: str
    usage: Usage | None


class Summarizer:
    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._hub = services.hub
        self._clock = services.clock

    async def summarize(
        self, session: SessionInfo, message_id: MessageID, plan: CompactionPlan, by: SummaryModel
    ) -> str | CompactionFailed:
        """The rolling summary of what is condensed. Only its last version is shown as it comes."""
        limit, summary = by.model.limit, plan.previous_summary
        context = summary_request.context_tokens(limit, learned_max=by.believed)
        answer = summary_request.answer_tokens(limit, context, wanted=plan.summary_tokens)
        readable = summary_request.conversation_tokens(
            context, answer=answer, previous_summary=summary, instructions=by.wish
        )
        if readable is not None and readable < limits.SUMMARY_TOKENS_MIN:
            return CompactionFailed(_TOO_LITTLE)
        parts = summary_input.split_conversation(plan.older, plan.earlier, tokens_max=readable)
        for index, part in enumerate(parts or [""]):
            asked = summary_request.request_text(
                part, previous_summary=summary, instructions=by.wish
            )
            request = _request(session, by.model, asked, tokens_max=answer)
            shown_as = message_id if index >= len(parts) - 1 else None
            said = await self._ask(session, shown_as, by.model, request)
            if isinstance(said, CompactionFailed):
                return said
            if reason := summary_request.find_fault(said, tokens_max=plan.summary_tokens):
                return CompactionFailed(reason)
            summary = said
        return summary

    async def _ask(
        self,
        session: SessionInfo,
        shown_as: MessageID | None,
        model: ResolvedModel,
        request: LLMRequest,
    ) -> str | CompactionFailed:
        try:
            async with asyncio.timeout(limits.SUMMARY_SECONDS_MAX):
                said = await self._read(session, shown_as, model, request)
        except TimeoutError:
            seconds = limits.SUMMARY_SECONDS_MAX
            return CompactionFailed(f"The model did not finish a summary within {seconds} seconds")
        except LLMError as error:
            return CompactionFailed(error.message)
        except MemoryError:
            return CompactionFailed("No memory was left for the summary")
        except Exception:
            # The turn that wanted the room goes on without a summary, whatever is wrong with one.
            logger.exception("a summary of %s failed", session.id)
            return CompactionFailed("The model failed in an unexpected way")
        if isinstance(said, CompactionFailed):
            return said
        if said.usage is not None:
            await shielded(self._pay(session, model, said.usage))
        return said.text

    async def _read(
        self,
        session: SessionInfo,
        shown_as: MessageID | None,
        model: ResolvedModel,
        request: LLMRequest,
    ) -> "_Said | CompactionFailed":
        pieces: list[str] = []
        size = 0
        end: Finish | ProviderError | None = None
        sent = (message for segment in request.segments for message in segment.messages)
        tokens = token_budget.estimate_messages(sent)
        limited = self._services.slots.limited(model, tokens=tokens)
        stream = with_retries(limited, self._services)(request)
        try:
            async for batch in stream:
                piece, end = _taken(batch)
                size += len(piece)
                if size > limits.SUMMARY_CHARS_MAX:
                    return CompactionFailed("The summary is too long")
                pieces.append(piece)
                if piece and shown_as is not None:
                    self._show(session, shown_as, piece)
        finally:
            await close_stream(stream)
        if end is None:
            return CompactionFailed("The answer ended before it was complete")
        if isinstance(end, ProviderError):
            return CompactionFailed(end.message)
        return _Said("".join(pieces), end.usage)

    async def _pay(self, session: SessionInfo, model: ResolvedModel, used: Usage) -> None:
        spent = budget.side_cost(self._services, session, model, purpose="summary", used=used)
        await self._services.store.append(
            session.id, [spent], location=session.location, running=True
        )

    def _show(self, session: SessionInfo, message_id: MessageID, piece: str) -> None:
        delta = CompactionDelta(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            message_id=message_id,
            text=piece,
        )
        self._hub.publish(delta, session.location)


def _request(
    session: SessionInfo, model: ResolvedModel, asked: str, *, tokens_max: int
) -> LLMRequest:
    return LLMRequest(
        model=model.ref,
        system=(),
        segments=(Segment((LLMMessage("user", (TextPart(asked),)),)),),
        generation=GenerationControls(max_tokens=tokens_max),
        headers=model_choice.correlation(session.id),
    )


def _taken(batch: Sequence[LLMEvent]) -> tuple[str, Finish | ProviderError | None]:
    """The text of a batch, and how the answer ended if it did."""
    text = "".join(event.text for event in batch if isinstance(event, TextDelta))
    ends = (event for event in batch if isinstance(event, Finish | ProviderError))
    return text, next(ends, None)
