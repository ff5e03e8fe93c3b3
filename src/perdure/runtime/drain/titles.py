"""A title made by a model, beside the conversation, once its first answer is there.

Who is asked: the model of the hidden title agent if it names one, else a small one of the Session's
provider, else the demo. Without any of them the title stays the beginning of the first prompt: a
large model is too dear for this, and one on this machine would keep the next turn waiting. Models
that the embedding program answers for are left in peace.

One try, bounded in time and size; whatever goes wrong changes nothing.

Invariant: a title that a person chose is never replaced.
"""

import asyncio
import logging

from msgspec import UNSET

from perdure.core import limits
from perdure.core.models.catalog import DEMO_ID
from perdure.core.session import title
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, TextDelta, Usage
from perdure.llm.message import LLMMessage, Segment, TextPart
from perdure.llm.model_call import ModelCall
from perdure.llm.request import GenerationControls, LLMRequest
from perdure.location.agents.agents import TITLE
from perdure.location.location import Location
from perdure.location.models.catalog import ResolvedModel
from perdure.net.streams import close_stream
from perdure.ports import DatabaseError, Transaction
from perdure.ports.tasks import StartTask
from perdure.runtime.turn import budget, model_choice
from perdure.runtime.turn.services import RunServices
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.event import Renamed, Spent
from perdure.schema.session.message import UserMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS
from perdure.store.tables import message_table, session_table

logger = logging.getLogger(__name__)


class _ChosenMeanwhileError(Exception):
    """The Session has another title by now."""


class _Untitled(Value):
    session: SessionInfo
    prompt: str


class _Made(Value):
    title: str
    """Empty where the answer holds none."""
    spent: Spent | None


class Titles:
    def __init__(self, services: RunServices, start: StartTask) -> None:
        self._services = services
        self._store = services.store
        self._start = start

    def begin(self, session_id: SessionID, answered_by: ModelRef) -> None:
        """The first answer is there. Never waits."""
        self._start(self._make(session_id, answered_by))

    async def _make(self, session_id: SessionID, answered_by: ModelRef) -> None:
        try:
            untitled = await self._store.database.read(lambda tx: _untitled(tx, session_id))
            if untitled is None:
                return
            async with self._services.locations.hold(untitled.session.location) as location:
                made = await self._asked(untitled, location, answered_by)
            if made is not None:
                await self._record(untitled.session, made)
        except (LLMError, TimeoutError, DatabaseError, DamagedRowError) as error:
            logger.debug("no title for %s: %s", session_id, error)
        except SessionNotFoundError:
            return

    async def _asked(
        self, untitled: _Untitled, location: Location, answered_by: ModelRef
    ) -> "_Made | None":
        agent = location.agents.select(TITLE)
        if agent is None:
            return None
        model = _model(location, agent.model or None, answered_by)
        if model is None:
            return None
        guidance = agent.system
        request = LLMRequest(
            model=model.ref,
            system=() if guidance is UNSET else (guidance,),
            segments=(
                Segment((LLMMessage("user", (TextPart(title.request_text(untitled.prompt)),)),)),
            ),
            generation=GenerationControls(max_tokens=limits.TITLE_TOKENS_MAX),
            headers=model_choice.correlation(untitled.session.id),
        )
        async with asyncio.timeout(limits.TITLE_SECONDS_MAX):
            call = self._services.slots.limited(model, tokens=limits.TITLE_TOKENS_MAX)
            said, used = await _answer(call, request)
        spent = None
        if used is not None:
            session = untitled.session
            spent = budget.side_cost(self._services, session, model, purpose="title", used=used)
        return _Made(title.from_answer(said), spent)

    async def _record(self, session: SessionInfo, made: "_Made") -> None:
        """The title, unless there is another by now, and what it has cost in any case."""
        here = session.location
        spent = [] if made.spent is None else [made.spent]

        async def within(tx: Transaction, seq: Seq) -> None:
            # `seq` is that of the last event; the title comes before what it has cost.
            if await session_table.was_renamed(tx, session.id, before=Seq(seq - len(spent))):
                raise _ChosenMeanwhileError

        if made.title not in ("", session.title):
            now = self._services.clock.now_millis()
            event = Renamed(timestamp=now, session_id=session.id, title=made.title)
            try:
                await self._store.append(session.id, [event, *spent], location=here, within=within)
            except _ChosenMeanwhileError:
                pass
            else:
                return
        if spent:
            await self._store.append(session.id, spent, location=here)


async def _untitled(tx: Transaction, session_id: SessionID) -> _Untitled | None:
    """The Session and its first prompt, if its title is still taken from that."""
    session = await session_table.require(tx, session_id)
    for row in await message_table.list_after(tx, session_id, NO_EVENTS):
        if row.type == "user":
            message = row.message()
            assert isinstance(message, UserMessage)
            same = session.title == title.from_prompt(message.text)
            return _Untitled(session, message.text) if same else None
    return None


def _model(
    location: Location, named: ModelRef | None, answered_by: ModelRef
) -> ResolvedModel | None:
    catalog = location.catalog
    asked = named or catalog.small(answered_by.provider_id)
    if asked is None and answered_by.provider_id == DEMO_ID:
        asked = answered_by
    if asked is None:
        return None
    model = catalog.resolve(asked, location.agents.options(TITLE).request)
    return model if isinstance(model, ResolvedModel) else None


async def _answer(call: ModelCall, request: LLMRequest) -> tuple[str, Usage | None]:
    """What was said, and what the provider counted, if it came so far."""
    said = ""
    used: Usage | None = None
    stream = call(request)
    try:
        async for batch in stream:
            said += "".join(event.text for event in batch if isinstance(event, TextDelta))
            used = next((event.usage for event in batch if isinstance(event, Finish)), used)
            if len(said) > limits.TITLE_ANSWER_CHARS_MAX:
                break
    finally:
        await close_stream(stream)
    return said, used
