"""Carries out the chain of models of an agent: who answers this turn, and who takes over.

core.models.model_chain decides. A switch, and the return to the chosen model, is an event of the
Session, committed before the next request goes out. Only a Session with a chain reads the rests.
"""

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.models import model_chain
from perdure.core.models.model_chain import Rest
from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.location.location import Location
from perdure.location.models.catalog import ResolvedModel
from perdure.ports import Transaction
from perdure.runtime.turn.model_choice import ChosenModel
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import Seq
from perdure.schema.models.model import ModelRef
from perdure.schema.session.event import ModelSubstituted
from perdure.schema.session.session import ModelSubstitute, SessionInfo
from perdure.store.tables import attempt_table, model_rest_table, retry_table


class ModelChains:
    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._store = services.store

    async def select(
        self, session: SessionInfo, location: Location, chosen: ChosenModel
    ) -> ChosenModel:
        """The model that answers now, recorded if another one answered before."""
        if not chosen.has_others and session.substitute is UNSET:
            return chosen
        rests = await self._store.database.read(model_rest_table.list_all)
        now = self._services.clock.now_millis()
        model = self._first_usable(location, chosen, rests, now=now)
        before = session.substitute.model if session.substitute else chosen.wanted
        if not model.ref.same_selection(before):
            event = self._event(session, chosen.wanted, model.ref, rests, now=now)
            await self._store.append(session.id, [event], location=session.location, running=True)
        return replace(chosen, model=model)

    async def hand_over(
        self,
        session: SessionInfo,
        location: Location,
        chosen: ChosenModel,
        *,
        error: LLMError,
        planned: Retry | None,
        step: int,
    ) -> bool:
        """Whether the next turn is for another model, because this one failed. Recorded then."""
        failed = chosen.model.ref
        if not chosen.has_others or not model_chain.may_hand_over(error, planned):
            return False
        rests = await self._store.database.read(model_rest_table.list_all)
        now = self._services.clock.now_millis()
        before = next((rest for rest in rests if rest.is_of(failed)), None)
        rest = model_chain.rest_after(failed, error, before, now=now)
        rests = [*(each for each in rests if each is not before), rest]
        model = self._first_usable(location, chosen, rests, now=now)
        if model_chain.resting_until(model.ref, rests, now=now):
            # Every model rests: the turn waits for the one that was asked last, or fails.
            await self._store.database.write(lambda tx: model_rest_table.put(tx, rest, now=now))
            return False
        event = self._event(session, chosen.wanted, model.ref, rests, now=now)

        async def within(tx: Transaction, seq: Seq) -> None:
            await model_rest_table.put(tx, rest, now=now)
            await retry_table.clear(tx, session.id)
            # It was refused, so it is not out there any more.
            await attempt_table.put(tx, session.id, "prepared", step=step)

        await self._store.append(
            session.id, [event], location=session.location, running=True, within=within
        )
        return True

    def _first_usable(
        self, location: Location, chosen: ChosenModel, rests: list[Rest], *, now: int
    ) -> ResolvedModel:
        """A model of the chain that can be called here. The chosen one can, so there is one."""
        request = location.agents.options(chosen.agent.id).request
        for ref in model_chain.order(chosen.chain, rests, now=now):
            model = location.catalog.resolve(ref, request)
            if isinstance(model, ResolvedModel):
                return model
        return chosen.model

    def _event(
        self, session: SessionInfo, first: ModelRef, model: ModelRef, rests: list[Rest], *, now: int
    ) -> ModelSubstituted:
        substitute = UNSET
        if not model.same_selection(first):
            reason = next((rest for rest in rests if rest.is_of(first)), None)
            substitute = ModelSubstitute(
                model=model,
                message="" if reason is None else reason.message,
                until=now if reason is None else reason.until,
            )
        return ModelSubstituted(timestamp=now, session_id=session.id, substitute=substitute)
