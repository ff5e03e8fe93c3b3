"""How many rows of a page are read at once: some have megabytes, and a page has hundreds."""

from collections.abc import Sequence

from perdure.core.limits import PAGE_BYTES_MAX


def count_fitting(sizes: Sequence[object], limit: int) -> int:
    """How many rows of these sizes fit on one page of at most `limit` rows; at least one."""
    total = 0
    for count, size in enumerate(sizes[:limit]):
        total += size if isinstance(size, int) else 0  # A damaged row may have none.
        if count and total > PAGE_BYTES_MAX:
            return count
    return limit
