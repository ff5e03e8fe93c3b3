"""Finding paths by what a person remembers of them.

A path is better the more plainly it holds the query: in its last name before the rest, in one
piece before letter by letter. Among equals the shorter path comes first. Case and blanks in the
query do not count.
"""

import heapq
from collections.abc import Iterable, Iterator


def best_matches(query: str, paths: Iterable[str], *, limit: int) -> list[str]:
    """The paths that hold every letter of `query` in order, the best first."""
    wanted = "".join(query.split()).casefold()
    ranked = (
        (rank, len(path), path) for path in paths if (rank := _rank(wanted, path)) is not None
    )
    return [path for _, _, path in heapq.nsmallest(limit, ranked)]


def _rank(wanted: str, path: str) -> int | None:
    folded = path.rstrip("/").casefold()
    name = folded.rpartition("/")[2]
    if name.startswith(wanted):
        return 0 if len(name) == len(wanted) else 1
    if wanted in name:
        return 2
    if wanted in folded:
        return 3
    if _in_order(wanted, iter(name)):
        return 4
    return 5 if _in_order(wanted, iter(folded)) else None


def _in_order(wanted: str, letters: Iterator[str]) -> bool:
    # Each look goes on where the last one found its letter.
    return all(letter in letters for letter in wanted)
