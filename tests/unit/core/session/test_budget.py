"""Budgets: which is used up, what holds together, and what a project may say."""

import pytest

from perdure.core.session import budget
from perdure.core.session.budget import NO_BUDGET, Budget, Spent
from perdure.core.settings import document as config_document
from perdure.core.settings import settings
from perdure.core.settings.document import Document, Trust
from perdure.schema.codec import JsonValue
from perdure.schema.models.model import TokenCache, TokenUsage


@pytest.mark.parametrize(
    ("bounds", "spent", "named"),
    [
        (NO_BUDGET, Spent(cost=1e9, tokens=10**12, turns=10**6), None),
        (Budget(cost=2), Spent(cost=1.9999), None),
        (Budget(cost=2), Spent(cost=2.0), "`cost` of the `budget`"),
        (Budget(tokens=10), Spent(tokens=9, cost=5), None),
        (Budget(tokens=10), Spent(tokens=11), "`tokens` of the `budget`"),
        (Budget(turns=3), Spent(turns=2), None),
        (Budget(turns=3), Spent(turns=3), "`turns` of the `budget`"),
        (Budget(cost=2, tokens=10, turns=3), Spent(turns=3, cost=2.5), "`cost` of the `budget`"),
    ],
)
def test_a_budget_that_is_used_up_is_named(bounds: Budget, spent: Spent, named: str | None) -> None:
    told = budget.check_budget(bounds, spent)
    assert told is None if named is None else told is not None and named in told


def test_of_two_budgets_the_smaller_counts() -> None:
    one, other = Budget(cost=2, tokens=10), Budget(cost=1, turns=5)
    assert one.narrowed(other) == other.narrowed(one) == Budget(cost=1, tokens=10, turns=5)
    assert one.narrowed(NO_BUDGET) == one
    assert not NO_BUDGET.narrowed(NO_BUDGET).is_bound


def test_every_kind_of_token_is_counted() -> None:
    used = TokenUsage(input=1, output=2, reasoning=4, cache=TokenCache(read=8, write=16))
    assert budget.total_tokens(used) == 31


def document(value: JsonValue, trust: Trust) -> Document:
    return config_document.read("opencode.json", trust, value)


def test_a_project_narrows_what_the_user_allows_and_never_more() -> None:
    users = document({"experimental": {"budget": {"cost": 5, "turns": 100}}}, "user")
    projects = document(
        {"experimental": {"budget": {"cost": 50, "turns": 10, "tokens": 7}}}, "project"
    )
    assert settings.merge((users, projects)).budget == Budget(cost=5, turns=10, tokens=7)


@pytest.mark.parametrize("wrong", [{"cost": 0}, {"cost": "much"}, {"turns": -1}, {"tokens": 1.5}])
def test_a_budget_that_makes_no_sense_is_told_and_binds_nothing(wrong: JsonValue) -> None:
    merged = settings.merge((document({"experimental": {"budget": wrong}}, "user"),))
    assert merged.budget == NO_BUDGET
    assert len(merged.problems) == 1
