"""Budgets: what a Session and its children may spend before a person decides.

A budget is checked before each turn, so the turn that crosses it is still paid for, and the next
one is not sent. If several budgets apply, the smallest bound of each kind counts.
"""

from typing import Final, TypeVar

from msgspec import UNSET, UnsetType

from perdure.core.config_file.entries import BudgetEntry
from perdure.schema.models.model import TokenUsage
from perdure.schema.session.usage import SessionBudget
from perdure.schema.value import Value

N = TypeVar("N", int, float)
_REACHED: Final = "The budget of this Session is used up: "


class Budget(Value, kw_only=True):
    """Upper bounds; None means unbounded."""

    cost: float | None = None
    """In US dollars, at the prices of the Catalog."""
    tokens: int | None = None
    """Of all kinds, input and output."""
    turns: int | None = None

    @classmethod
    def from_settings(cls, given: SessionBudget | BudgetEntry | UnsetType) -> "Budget":
        """The budget of a Session or a configuration."""
        if given is UNSET:
            return NO_BUDGET
        return cls(
            cost=None if given.cost is UNSET else given.cost,
            tokens=None if given.tokens is UNSET else given.tokens,
            turns=None if given.turns is UNSET else given.turns,
        )

    @property
    def is_bound(self) -> bool:
        return self != NO_BUDGET

    def combine(self, other: "Budget") -> "Budget":
        """The budget that applies when both hold."""
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
    """Why no further turn may be sent, or None. `where` says where the bound is set."""
    if budget.cost is not None and spent.cost >= budget.cost:
        return _message("cost", where, f"{spent.cost:.4f} of {budget.cost:.4f} US dollars")
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return _message("tokens", where, f"{spent.tokens} of {budget.tokens} tokens")
    if budget.turns is not None and spent.turns >= budget.turns:
        return _message("turns", where, f"{spent.turns} of {budget.turns} turns")
    return None


def is_reached(reason: str) -> bool:
    """Whether a step failed with the message of a budget that is used up."""
    return reason.startswith(_REACHED)


def _message(kind: str, where: str, used: str) -> str:
    return f"{_REACHED}{used}. Raise `{kind}` of the `budget` {where} to go on."


def _smaller(one: N | None, other: N | None) -> N | None:
    known = [value for value in (one, other) if value is not None]
    return min(known, default=None)
