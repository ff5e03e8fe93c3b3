"""What a family of Sessions has spent together, whichever of them is asked for."""

from pathlib import Path

from msgspec import UNSET

from perdure.core.budget import Budget, Spent
from perdure.runtime import spending
from perdure.schema.ids import ProjectID, SessionID
from perdure.schema.model import TokenCache, TokenUsage
from perdure.schema.session import SessionTime
from perdure.schema.session_event import SessionCreated, SessionSeed
from tests.contract.testing.faulty_runtime import Stage, staged

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
        database = stage.runtime.store.database
        for member in family:
            spent = await database.read(lambda tx, of=member: spending.of_family(tx, of))
            assert spent == Spent(cost=2.0, tokens=80, turns=0)
            assert await spending.reached(database, member, Budget(cost=2)) is not None
        for alone in (stranger, orphan):
            spent = await database.read(lambda tx, of=alone: spending.of_family(tx, of))
            assert spent == Spent(cost=0.5, tokens=20, turns=0)
            assert await spending.reached(database, alone, Budget(cost=2)) is None


async def test_a_circle_of_parents_comes_to_an_end(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        one = await made(stage, "one", "other")
        await made(stage, "other", "one")
        spent = await stage.runtime.store.database.read(lambda tx: spending.of_family(tx, one))
        assert spent.cost == 1.0
