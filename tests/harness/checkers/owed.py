"""Checker of owed runs: nothing runs that no client, notice or person asked for."""

from collections.abc import Iterator

from perdure.schema.session import event as events
from tests.harness.checkers.checker import Seen


class OnlyOwedRuns:
    """What was only admitted, or stopped by an interrupt, waits until a run is asked for."""

    promise = "P1"

    def check(self, seen: Seen) -> Iterator[str]:
        unasked = seen.clients.unasked.since
        told = [item for item in seen.fresh if isinstance(item.event, events.SyntheticAdded)]
        for item in seen.fresh:
            event = item.event
            if isinstance(event, events.PromptAdmitted) and item.seq > unasked.get(
                event.message_id, item.seq
            ):
                # Admitted anew, after a revert took the first one out of the history.
                del unasked[event.message_id]
            if not isinstance(event, events.PromptPromoted) or item.copied:
                continue
            since = unasked.pop(event.message_id, None)
            # A notice asks for a run as well.
            woken = any(one.session_id == item.session_id for one in told)
            if since is not None and item.seq > since and not woken:
                yield f"{event.message_id} of {item.session_id} was run, and no run was owed"
