"""What a Session has used, and what it may use."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.models.model import ModelRef, TokenUsage

SidePurpose = Literal["title", "summary"]
"""What a model is asked for beside the conversation."""
Purpose = Literal["turn", "title", "summary"]


class SessionBudget(Record):
    """For one Session with all below it, beside what the configuration allows. Absent: no bound."""

    cost: float | UnsetType = UNSET
    """In US dollars."""
    tokens: int | UnsetType = UNSET
    """Of every kind, in and out."""
    turns: int | UnsetType = UNSET


class ModelUsage(Record):
    """Of one model for one purpose."""

    model: ModelRef
    purpose: Purpose
    requests: int
    """That were answered to their end."""
    cost: float
    tokens: TokenUsage


class UsageTotal(Record):
    cost: float
    tokens: TokenUsage
    turns: int
    models: tuple[ModelUsage, ...]


class SessionUsage(Record):
    """What a Session has used by itself, and together with all Sessions below it."""

    session: UsageTotal
    tree: UsageTotal
    budget: SessionBudget | UnsetType = UNSET
