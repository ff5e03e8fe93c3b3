"""The chain of models of an agent: which model answers while those before it cannot.

A model that refuses for a while, or that does not answer, rests: for as long as its provider says,
else for a time that doubles with each failure in a row. Rests are shared by all Sessions
(store.tables.model_rest_table). A Session uses the first model of its chain that does not rest, so
it returns to the chosen one when that is back. Carrying it out is runtime.turn.model_chain.

Invariant: a model that was chosen outside the chain of the agent is never replaced.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Value

_DOUBLINGS_MAX: Final = 10


class Rest(Value, kw_only=True):
    """A model that is not asked for a while."""

    provider_id: str
    model_id: str
    until: int
    """When it is asked again, in milliseconds since the epoch."""
    failed: int
    """Rests in a row, this one included."""
    message: str
    """Why it rests."""

    def is_of(self, model: ModelRef) -> bool:
        return (self.provider_id, self.model_id) == (model.provider_id, model.id)


def chain_of(chosen: ModelRef, models: Sequence[ModelRef]) -> tuple[ModelRef, ...]:
    """The chosen model, and those that stand in for it, in order."""
    for index, model in enumerate(models):
        if model.same_model(chosen):
            return (chosen, *models[index + 1 :])
    return (chosen,)


def order(chain: Sequence[ModelRef], rests: Sequence[Rest], *, now: int) -> list[ModelRef]:
    """The models of a chain in the order in which to try them.

    First those that do not rest, in the order of the chain, then the others: the one that is back
    first comes first.
    """
    until = {model: resting_until(model, rests, now=now) for model in chain}
    return sorted(chain, key=lambda model: until[model])


def resting_until(model: ModelRef, rests: Sequence[Rest], *, now: int) -> int:
    """When a model is asked again; 0 if it does not rest."""
    found = (rest.until for rest in rests if rest.is_of(model) and rest.until > now)
    return max(found, default=0)


def may_hand_over(error: LLMError, planned: Retry | None) -> bool:
    """Whether another model of the chain answers instead of a wait or a failure.

    A short wait is cheaper than another model, which has none of the conversation in its cache.
    """
    if not error.may_pass:
        return False
    return planned is None or planned.delay > limits.CHAIN_WAIT_SECONDS_MAX * 1000


def rest_after(model: ModelRef, error: LLMError, before: Rest | None, *, now: int) -> Rest:
    """How long a model rests that has just failed; `before` is its last rest."""
    again = before is not None and now - before.until < limits.CHAIN_REST_SECONDS_MAX * 1000
    failed = before.failed + 1 if before is not None and again else 1
    doubled = limits.CHAIN_REST_SECONDS_FIRST * 2 ** min(failed - 1, _DOUBLINGS_MAX)
    millis = round(min(doubled, limits.CHAIN_REST_SECONDS_MAX) * 1000)
    if error.retry_after_ms is not None:
        millis = error.retry_after_ms
    elif error.reason == "quota-exceeded":
        millis = round(limits.CHAIN_REST_SECONDS_MAX * 1000)
    return Rest(
        provider_id=model.provider_id,
        model_id=model.id,
        until=now + millis,
        failed=failed,
        message=error.message,
    )
