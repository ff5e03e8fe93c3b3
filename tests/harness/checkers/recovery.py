"""Checker of request marks: no mark outlives its run."""

from collections.abc import Iterator

from tests.harness.checkers.checker import Seen


class MarksEndWithTheirRuns:
    """At rest nothing is owed. What waits for a person has been decided by then.

    What could not be run when its process died runs with the next prompt.
    """

    promise = "P1"

    def check(self, seen: Seen) -> Iterator[str]:
        if not seen.at_rest:
            return
        machine = seen.clients.machine
        for session_id, state in machine.ledger.attempts().items():
            if session_id in machine.witness.excused:
                continue
            yield f"{session_id} owes a request that is {state}, and nothing runs"
