"""Session History ready to be sent: the same as a fresh one, and cheaper."""

from msgspec.structs import replace

from perdure.core.session.history import Cut
from perdure.llm.message import LLMMessage, Segment
from perdure.runtime.turn.history_cache import HistoryCache
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session.event import RevertCommitted, SessionEvent, StepStarted
from perdure.store.log.event_store import EventStore
from tests.fixtures import MODEL, SESSION, Facts, answered, append
from tests.requirements import requirement

WHOLE = Cut(None, None)
OTHER_MODEL = ModelRef(id="other", provider_id="p")


async def sent(
    cache: HistoryCache,
    store: EventStore,
    *,
    cut: Cut = WHOLE,
    model: ModelRef = MODEL,
    session_id: SessionID = SESSION,
    route: StepRoute | None = None,
    plain: bool = False,
) -> tuple[Segment, ...]:
    history = await store.database.read(
        lambda tx: cache.load(tx, session_id, cut=cut, model=model, route=route, plain=plain)
    )
    return history.runs


def messages(runs: tuple[Segment, ...]) -> list[LLMMessage]:
    return [message for run in runs for message in run.messages]


async def test_what_was_there_is_kept_and_only_the_new_is_read(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    await append(store, answered(facts, "msg_1", "msg_2", "one"))
    first = await sent(cache, store)
    await append(store, answered(facts, "msg_3", "msg_4", "two"))
    second = await sent(cache, store)
    assert second[0] is first[0]
    assert messages(second) == messages(await sent(HistoryCache(), store))
    assert [message.role for message in messages(second)] == ["user", "assistant"] * 2


async def test_a_second_prompt_before_any_answer_joins_the_first(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    await append(store, [facts.promoted("msg_1", "one")])
    assert len(await sent(cache, store)) == 1
    await append(store, [facts.promoted("msg_2", "two"), facts.told("msg_3")])
    (run,) = await sent(cache, store)
    assert [message.role for message in run.messages] == ["user", "user", "system"]
    assert await sent(cache, store) == (run,)


@requirement("S59", "S161")
async def test_switching_the_model_lowers_everything_anew(store: EventStore, facts: Facts) -> None:
    cache = HistoryCache()
    thought = facts.reasoning("msg_1", "r", "hm", {"p": {"signature": "s"}})
    await append(store, [facts.step("msg_1"), *thought, facts.ended("msg_1")])
    native = messages(await sent(cache, store))
    foreign = messages(await sent(cache, store, model=OTHER_MODEL))
    assert type(native[0].content[0]).__name__ == "ReasoningPart"
    assert type(foreign[0].content[0]).__name__ == "TextPart"
    assert messages(await sent(cache, store)) == native


async def test_a_variant_of_the_model_keeps_what_is_there(store: EventStore, facts: Facts) -> None:
    cache = HistoryCache()
    await append(store, answered(facts, "msg_1", "msg_2", "one"))
    first = await sent(cache, store)
    high = ModelRef(id=MODEL.id, provider_id=MODEL.provider_id, variant="high")
    again = await sent(cache, store, model=high)
    assert [id(run) for run in again] == [id(run) for run in first]


@requirement("S2", "S36", "S58")
async def test_a_new_cut_leaves_out_what_lies_before_it(store: EventStore, facts: Facts) -> None:
    cache = HistoryCache()
    await append(store, [facts.told("msg_0"), *answered(facts, "msg_1", "msg_2", "one")])
    assert len(messages(await sent(cache, store))) == 3
    appended = await append(store, [facts.compacted("msg_3"), facts.promoted("msg_4", "two")])
    compaction = appended.events[0].seq
    cut = Cut(compaction=compaction, baseline=compaction)
    texts = [getattr(m.content[0], "text", "") for m in messages(await sent(cache, store, cut=cut))]
    assert len(texts) == 2
    assert "so far" in texts[0]
    assert texts[1] == "two"


@requirement("S36")
async def test_while_a_new_baseline_is_blocked_later_context_stays_in_view(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.told("msg_1"), facts.told("msg_2"), facts.compacted("msg_3")])
    cut = Cut(compaction=Seq(3), baseline=Seq(1))
    roles = [message.role for message in messages(await sent(HistoryCache(), store, cut=cut))]
    assert roles == ["system", "user"]


async def test_the_least_recently_used_history_goes_first(store: EventStore) -> None:
    sessions = [Facts(SessionID(f"ses_{number}")) for number in range(3)]
    for number, facts in enumerate(sessions):
        prompt = facts.promoted(f"msg_{number}", "x" * 1_000)
        await append(store, [facts.created(), prompt], facts.session_id)
    cache = HistoryCache(bytes_max=7_000)
    first = [await sent(cache, store, session_id=facts.session_id) for facts in sessions[:2]]
    assert (await sent(cache, store, session_id=SessionID("ses_0")))[0] is first[0][0]
    await sent(cache, store, session_id=SessionID("ses_2"))
    assert (await sent(cache, store, session_id=SessionID("ses_0")))[0] is first[0][0]
    rebuilt = await sent(cache, store, session_id=SessionID("ses_1"))
    assert rebuilt[0] is not first[1][0]
    assert messages(rebuilt) == messages(first[1])


async def test_a_history_larger_than_the_bound_is_kept_while_it_is_used(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache(bytes_max=10)
    await append(store, [facts.promoted("msg_1", "x" * 10_000)])
    assert (await sent(cache, store))[0] is (await sent(cache, store))[0]


async def test_a_dropped_history_is_read_again(store: EventStore, facts: Facts) -> None:
    cache = HistoryCache()
    await append(store, [facts.promoted("msg_1", "one")])
    before = await sent(cache, store)
    cache.drop(SESSION)
    cache.drop(SESSION)
    after = await sent(cache, store)
    assert after[0] is not before[0]
    assert messages(after) == messages(before)


async def test_history_that_a_revert_took_away_is_not_sent(store: EventStore, facts: Facts) -> None:
    cache = HistoryCache()
    await append(store, answered(facts, "msg_1", "msg_2", "one"))
    await append(store, answered(facts, "msg_3", "msg_4", "two"))
    assert len(messages(await sent(cache, store))) == 4
    await append(store, [facts.stamped(RevertCommitted, message_id=MessageID("msg_2"))])
    await append(store, answered(facts, "msg_5", "msg_6", "three"))
    after = messages(await sent(cache, store))
    assert after == messages(await sent(HistoryCache(), store))
    assert len(after) == 4


async def test_a_revert_to_the_last_message_keeps_what_is_kept(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    await append(store, answered(facts, "msg_1", "msg_2", "one"))
    before = await sent(cache, store)
    await append(store, [facts.stamped(RevertCommitted, message_id=MessageID("msg_2"))])
    assert (await sent(cache, store))[0] is before[0]


def thought(facts: Facts, message_id: str, *, plain: bool = False) -> list[SessionEvent]:
    """A step that thinks; `plain`: its request had no native parts."""
    step = facts.step(message_id)
    begun = replace(step, route=StepRoute(plain=True)) if plain else step
    reasoning = facts.reasoning(message_id, "r", message_id, {"p": {"signature": "s"}})
    return [begun, *reasoning, facts.ended(message_id)]


def kinds(runs: tuple[Segment, ...]) -> list[str]:
    return [type(message.content[0]).__name__ for message in messages(runs)]


async def test_after_a_refusal_what_was_said_before_goes_without_native_parts_for_good(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    await append(store, [*thought(facts, "msg_1"), *thought(facts, "msg_2")])
    assert kinds(await sent(cache, store)) == ["ReasoningPart"] * 2
    refused = await sent(cache, store, plain=True)
    assert kinds(refused) == ["TextPart"] * 2
    await append(store, thought(facts, "msg_3", plain=True))
    after = await sent(cache, store)
    assert kinds(after) == ["TextPart", "TextPart", "ReasoningPart"]
    assert after[:2] == refused
    # Another process, or this one after a restart, sends the same.
    assert messages(await sent(HistoryCache(), store)) == messages(after)
    await append(store, thought(facts, "msg_4"))
    assert kinds(await sent(cache, store)) == ["TextPart"] * 2 + ["ReasoningPart"] * 2


async def test_a_step_without_native_parts_that_another_process_sent_is_heeded(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    await append(store, thought(facts, "msg_1"))
    assert kinds(await sent(cache, store)) == ["ReasoningPart"]
    await append(store, thought(facts, "msg_2", plain=True))
    assert kinds(await sent(cache, store)) == ["TextPart", "ReasoningPart"]


async def test_another_way_to_the_model_lowers_everything_anew(
    store: EventStore, facts: Facts
) -> None:
    cache = HistoryCache()
    here, there = (StepRoute(origin=f"https://{name}.example") for name in ("here", "there"))
    begun, *rest = thought(facts, "msg_1")
    assert isinstance(begun, StepStarted)
    await append(store, [replace(begun, route=here), *rest])
    assert kinds(await sent(cache, store, route=here)) == ["ReasoningPart"]
    assert kinds(await sent(cache, store, route=there)) == ["TextPart"]
