"""Usage and budget of a Session."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.models.model import ModelRef, TokenUsage

SidePurpose = Literal["title", "summary"]
"""Purposes of model requests."""
Purpose = Literal["turn", "title", "summary"]


class SessionBudget(Record):
    """The budget of one Session and its children, in addition to the configured one."""

    cost: float | UnsetType = UNSET
    """In US dollars."""
    tokens: int | UnsetType = UNSET
    """Of all kinds, input and output."""
    turns: int | UnsetType = UNSET


class ModelUsage(Record):
    """Usage of one model for one purpose."""

    model: ModelRef
    purpose: Purpose
    requests: int
    """Requests that were answered completely."""
    cost: float
    tokens: TokenUsage


class UsageTotal(Record):
    cost: float
    tokens: TokenUsage
    turns: int
    models: tuple[ModelUsage, ...]


class SessionUsage(Record):
    """Usage of a Session alone, and together with its children."""

    session: UsageTotal
    tree: UsageTotal
    budget: SessionBudget | UnsetType = UNSET
