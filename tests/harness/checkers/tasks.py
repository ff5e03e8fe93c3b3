"""What tasks owe: whoever had others do something hears how that ended, once."""

from collections import Counter
from collections.abc import Iterator

from perdure.core.session import subagent
from perdure.schema.ids import MessageID
from perdure.schema.session import event as events
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.ledger import LoggedEvent


class TasksAreToldOnce:
    """Each end is told in the result of its call or in a notice, and not in both.

    At rest every child has come to its end, and whoever wanted to know knows; one that was stopped
    or put away hears of it when it goes on.
    """

    promise = "P4"

    def __init__(self) -> None:
        self._told: Counter[MessageID] = Counter()
        """By the id of the notice that it is, or would have been."""

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            if (telling := _telling(item)) is not None:
                self._told[telling] += 1
                if self._told[telling] > 1:
                    yield f"{item.session_id} was told {telling} twice"
        if seen.at_rest:
            yield from self._check_rest(seen)

    def _check_rest(self, seen: Seen) -> Iterator[str]:
        machine = seen.clients.machine
        notices = machine.ledger.notices()
        for task, (child, state) in machine.ledger.tasks().items():
            if state in ("waiting", "ended") and child not in machine.witness.excused:
                yield f"task {task} is {state} although nothing runs"
            notice = subagent.notice_id(task)
            if state == "delivered" and not self._told[notice] and notice not in notices:
                yield f"the end of task {task} counts as told, and nobody was"
        excused = machine.ledger.archived().union(machine.witness.excused)
        for notice, session_id in notices.items():
            if session_id not in excused:
                yield f"{session_id} has yet to be told {notice}, and nothing runs"


def _telling(item: LoggedEvent) -> MessageID | None:
    match item.event:
        case events.SyntheticAdded(message_id=id):
            return id
        case events.ToolSucceeded(
            assistant_message_id=step, call_id=call, structured={"sessionID": _, "state": state}
        ):
            task = subagent.prompt_id(item.session_id, step, call)
            return None if state == "running" else subagent.notice_id(task)
        case _:
            return None
