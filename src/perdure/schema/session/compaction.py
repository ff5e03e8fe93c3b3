"""The report of a compaction that a person asked for."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


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
