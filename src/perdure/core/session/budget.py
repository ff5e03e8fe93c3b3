"""What a Session, together with the Sessions that belong to it, may spend before a person decides.

A budget is looked at before each turn, so the turn that crosses it is paid for; the next one is not
sent. Several budgets hold together: of each kind the smallest counts.
"""

from typing import TypeVar

from msgspec import UNSET, UnsetType

from perdure.core.config_file.entries import BudgetEntry
from perdure.schema.models.model import TokenUsage
from perdure.schema.session.usage import SessionBudget
from perdure.schema.value import Value

N = TypeVar("N", int, float)


class Budget(Value, kw_only=True):
    """None is no bound."""

    cost: float | None = None
    """In US dollars, at the prices of the Catalog."""
    tokens: int | None = None
    """Of every kind, in and out."""
    turns: int | None = None

    @classmethod
    def of(cls, said: SessionBudget | BudgetEntry | UnsetType) -> "Budget":
        """What a Session or a configuration says."""
        if said is UNSET:
            return NO_BUDGET
        return cls(
            cost=None if said.cost is UNSET else said.cost,
            tokens=None if said.tokens is UNSET else said.tokens,
            turns=None if said.turns is UNSET else said.turns,
        )

    @property
    def is_bound(self) -> bool:
        return self != NO_BUDGET

    def narrowed(self, other: "Budget") -> "Budget":
        """What is left when both hold."""
        return Budget(
            cost=_smaller(self.cost, other.cost),
            tokens=_smaller(self.tokens, other.tokens),
            turns=_smaller(self.turns, other.turns),
        )


class Spent(Value, kw_only=True):
    cost: float = 0.0
    tokens: int = 0
    turns: int = 0


NO_BUDGET = Budget()


def total_tokens(tokens: TokenUsage) -> int:
    return sum(
        (tokens.input, tokens.output, tokens.reasoning, tokens.cache.read, tokens.cache.write)
    )


def check_budget(
    budget: Budget, spent: Spent, *, where: str = "in the configuration"
) -> str | None:
    """Why no further turn may be sent; None while one may. `where` the bound was set."""
    if budget.cost is not None and spent.cost >= budget.cost:
        return _message("cost", where, f"{spent.cost:.4f} of {budget.cost:.4f} US dollars")
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return _message("tokens", where, f"{spent.tokens} of {budget.tokens} tokens")
    if budget.turns is not None and spent.turns >= budget.turns:
        return _message("turns", where, f"{spent.turns} of {budget.turns} turns")
    return None


def _message(kind: str, where: str, used: str) -> str:
    return (
        f"The budget of this Session is used up: {used}."
        f" Raise `{kind}` of the `budget` {where} to go on."
    )


def _smaller(one: N | None, other: N | None) -> N | None:
    known = [value for value in (one, other) if value is not None]
    return min(known, default=None)
