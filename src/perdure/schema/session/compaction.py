"""Compactions: their durable events, and the report for the person who asked for one."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import MessageID
from perdure.schema.session.fact import Fact
from perdure.schema.session.todo import Todos

CompactionReason = Literal["auto", "manual"]


class CompactionReport(Record):
    """The report of a compaction. Sizes are estimates of the next request, in tokens.

    `pruned`: old large tool results are sent as markers that name a file with their text.
    `summarised`: there is a new checkpoint. `nothing`: the request is as large as before.
    """

    outcome: Literal["pruned", "summarised", "nothing"]
    tokens_before: int
    tokens_after: int
    results: int | UnsetType = UNSET
    """How many tool results were pruned."""
    reason: str | UnsetType = UNSET
    """Why nothing was done, or why there is no summary."""


class CompactionStarted(Fact):
    message_id: MessageID
    reason: CompactionReason
    instruction: str | UnsetType = UNSET
    """Instruction for the summary from the person who asked."""


class CompactionEnded(Fact):
    message_id: MessageID
    reason: CompactionReason
    text: str
    recent: str
    directives: tuple[str, ...] | UnsetType = UNSET
    """User messages before the recent text, verbatim."""
    todos: Todos | UnsetType = UNSET
    """Open todos."""


class CompactionReported(Fact):
    """A compaction ended without a new checkpoint: what it did, or why it did nothing."""

    outcome: Literal["pruned", "nothing", "failed"]
    reason: CompactionReason
    note: str | UnsetType = UNSET
    """Why nothing was done, or why there is no summary."""
    tokens_before: int | UnsetType = UNSET
    """Estimated size of the next request; not set where it was not measured."""
    tokens_after: int | UnsetType = UNSET
    results: int | UnsetType = UNSET
    """How many tool results were pruned."""
