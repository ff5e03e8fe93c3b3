"""Token usage: what a provider counted, as it is stored and added up.

The totals of a Session are a projection; which model and which purpose they went to is folded from
the log when somebody asks. A revert takes messages away and gives nothing back.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from perdure.llm.event import Usage
from perdure.schema.ids import MessageID
from perdure.schema.models.model import NO_TOKENS, ModelRef, TokenCache, TokenUsage
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.usage import ModelUsage, Purpose, UsageTotal


def tokens_of(usage: Usage) -> TokenUsage:
    return TokenUsage(
        input=max(0, usage.input),
        output=max(0, usage.output),
        reasoning=max(0, usage.reasoning),
        cache=TokenCache(read=max(0, usage.cache_read), write=max(0, usage.cache_write)),
    )


def session_total(session: SessionInfo, log: Iterable[SessionEvent]) -> UsageTotal:
    """Of one Session, with those of its events that tell of a request."""
    models: dict[MessageID, ModelRef] = {}
    lines: list[ModelUsage] = []
    for event in log:
        match event:
            case events.StepStarted(assistant_message_id=id, model=model):
                models[id] = model
            case events.StepEnded(assistant_message_id=id) if id in models:
                lines.append(_line(models[id], "turn", event))
            case events.Spent(model=model, purpose=purpose):
                lines.append(_line(model, purpose, event))
            case _:
                pass
    return UsageTotal(
        cost=session.cost,
        tokens=session.tokens,
        turns=sum(line.purpose == "turn" for line in lines),
        models=_merge_lines(lines),
    )


def sum_totals(totals: Iterable[UsageTotal]) -> UsageTotal:
    whole = UsageTotal(cost=0.0, tokens=NO_TOKENS, turns=0, models=())
    for each in totals:
        whole = UsageTotal(
            cost=whole.cost + each.cost,
            tokens=whole.tokens.plus(each.tokens),
            turns=whole.turns + each.turns,
            models=(*whole.models, *each.models),
        )
    return replace(whole, models=_merge_lines(whole.models))


def _line(model: ModelRef, purpose: Purpose, of: events.StepEnded | events.Spent) -> ModelUsage:
    plain = ModelRef(id=model.id, provider_id=model.provider_id)
    cost = float(of.cost)
    return ModelUsage(model=plain, purpose=purpose, requests=1, cost=cost, tokens=of.tokens)


def _merge_lines(lines: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """One line for each model and purpose, in the order in which they were first used."""
    gathered: dict[tuple[str, str, Purpose], ModelUsage] = {}
    for line in lines:
        key = (line.model.provider_id, line.model.id, line.purpose)
        before = gathered.get(key)
        gathered[key] = line if before is None else _sum(before, line)
    return tuple(gathered.values())


def _sum(one: ModelUsage, other: ModelUsage) -> ModelUsage:
    return replace(
        one,
        requests=one.requests + other.requests,
        cost=one.cost + other.cost,
        tokens=one.tokens.plus(other.tokens),
    )
