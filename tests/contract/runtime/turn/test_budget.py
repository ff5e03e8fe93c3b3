"""What a family of Sessions has spent together, whichever of them is asked for."""

from pathlib import Path

from msgspec import UNSET

from perdure.core.session.budget import NO_BUDGET, Budget
from perdure.runtime.turn import budget
from perdure.schema.ids import ProjectID, SessionID
from perdure.schema.models.model import ModelRef, TokenCache, TokenUsage
from perdure.schema.session.event import SessionCreated, SessionSeed, Spent
from perdure.schema.session.session import SessionTime
from perdure.schema.session.usage import ModelUsage, SessionBudget
from perdure.store.tables import session_table
from tests.contract.harness.faulty_runtime import Stage, staged

MODEL = ModelRef(id="m", provider_id="p")
USED = TokenUsage(input=10, output=5, reasoning=1, cache=TokenCache(read=3, write=1))


async def made(stage: Stage, name: str, parent: str | None = None) -> SessionID:
    session_id = SessionID(f"ses_{name}")
    seed = SessionSeed(
        id=session_id,
        slug=name,
        project_id=ProjectID("global"),
        directory="/",
        path="",
        title=name,
        version="0",
        cost=0.5,
        tokens=USED,
        time=SessionTime(created=1, updated=1),
        parent_id=UNSET if parent is None else SessionID(f"ses_{parent}"),
    )
    created = SessionCreated(session_id=session_id, info=seed)
    await stage.runtime.store.append(session_id, [created], location=None)
    return session_id


async def told(stage: Stage, session_id: SessionID, bounds: Budget = NO_BUDGET) -> str | None:
    database = stage.runtime.store.database
    session = await database.read(lambda tx: session_table.require(tx, session_id))
    return await budget.find_exceeded(database, session, bounds)


async def test_children_spend_what_is_their_parents(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        family = [
            await made(stage, "root"),
            await made(stage, "child", "root"),
            await made(stage, "sibling", "root"),
            await made(stage, "grandchild", "child"),
        ]
        stranger = await made(stage, "stranger")
        orphan = await made(stage, "orphan", "deleted")
        for member in family:
            assert "2.0000 of 2.0000" in str(await told(stage, member, Budget(cost=2)))
            assert "80 of 80 tokens" in str(await told(stage, member, Budget(tokens=80)))
            assert await told(stage, member, Budget(cost=2.1, tokens=81, turns=1)) is None
        for alone in (stranger, orphan):
            assert await told(stage, alone, Budget(cost=0.6, tokens=21)) is None
            assert "20 of 20 tokens" in str(await told(stage, alone, Budget(tokens=20)))


async def test_a_budget_of_a_session_holds_for_all_below_it_and_for_nobody_else(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        root, child = await made(stage, "root"), await made(stage, "child", "root")
        sibling = await made(stage, "sibling", "root")
        below = await made(stage, "grandchild", "child")
        usage = stage.runtime.usage
        await usage.set_budget(child, SessionBudget(cost=1.0))
        for bound in (child, below):
            assert "`cost` of the `budget` of Session ses_child" in str(await told(stage, bound))
        for free in (root, sibling):
            assert await told(stage, free) is None
        raised = await usage.set_budget(child, SessionBudget(cost=1.5))
        assert raised.budget == SessionBudget(cost=1.5)
        assert await told(stage, below) is None
        # What the configuration allows counts besides.
        assert "in the configuration" in str(await told(stage, below, Budget(cost=2)))
        assert (await usage.set_budget(child, SessionBudget())).budget is UNSET


async def test_usage_is_told_alone_and_with_all_below(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        root, child = await made(stage, "root"), await made(stage, "child", "root")
        await made(stage, "grandchild", "child")
        fact = Spent(
            timestamp=2, session_id=child, purpose="title", model=MODEL, cost=0.25, tokens=USED
        )
        await stage.runtime.store.append(child, [fact], location=None)
        above = await stage.runtime.usage.load_usage(root)
        assert (above.session.cost, above.session.models) == (0.5, ())
        assert (above.tree.cost, above.tree.tokens.input) == (1.75, 40)
        own = (await stage.runtime.usage.load_usage(child)).session
        assert (own.cost, own.tokens.output, own.turns) == (0.75, 10, 0)
        (line,) = own.models
        assert line == ModelUsage(model=MODEL, purpose="title", requests=1, cost=0.25, tokens=USED)
        assert above.tree.models == (line,)


async def test_a_circle_of_parents_comes_to_an_end(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        one = await made(stage, "one", "other")
        await made(stage, "other", "one")
        await stage.runtime.usage.set_budget(one, SessionBudget(cost=5.0))
        assert "1.0000 of 1.0000" in str(await told(stage, one, Budget(cost=1)))
        assert await told(stage, one) is None
        assert (await stage.runtime.usage.load_usage(one)).tree.cost == 1.0
