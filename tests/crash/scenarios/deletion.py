"""`python -m tests.crash.scenarios.deletion`: crash at every point of a deletion.

A process that is killed deletes a Session with more rows than one transaction removes, its child
and a kept tool output; the next process finishes what was begun. It prints what is wrong and exits
with 1 if anything is. It is a command, because a process that forks must have no threads.
"""

import sys
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from perdure.core import limits
from perdure.location.tools.built_in import OUTPUT_DIRECTORY
from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.crash.scenarios import scenario
from tests.crash.scenarios.scenario import Scenario
from tests.fixtures import LOCATION, Facts, answered
from tests.support import database_check

PARENT: Final = SessionID("ses_parent")
CHILD: Final = SessionID("ses_child")
OTHER: Final = SessionID("ses_other")
MESSAGES: Final = limits.DELETION_ROWS_MAX + 50
"""More than one transaction takes away."""


def main() -> int:
    return scenario.sweep(Scenario(_prepare, _delete, _finish_and_check))


async def _prepare(runtime: Runtime, site: Path) -> None:
    outputs = site / OUTPUT_DIRECTORY
    outputs.mkdir(parents=True)
    (outputs / "tool_kept").write_text("complete", encoding="utf-8")
    for session_id in (PARENT, CHILD, OTHER):
        facts = Facts(session_id)
        created = facts.created()
        if session_id == CHILD:
            created = replace(created, info=replace(created.info, parent_id=PARENT))
        mark = session_id.removeprefix("ses_")
        log: list[SessionEvent] = [
            created,
            *answered(facts, f"msg_{mark}_1", f"msg_{mark}_2", "said"),
            facts.step(f"msg_{mark}_3"),
            facts.called(f"msg_{mark}_3", "call"),
            replace(
                facts.succeeded(f"msg_{mark}_3", "call"),
                output_paths=(str(outputs / "tool_kept"),) if session_id == PARENT else (),
            ),
            facts.ended(f"msg_{mark}_3"),
        ]
        await runtime.store.append(session_id, log, location=LOCATION)
    many = Facts(PARENT)
    await runtime.store.append(
        PARENT,
        [
            many.stamped(events.SyntheticAdded, message_id=f"msg_many_{n}", text="x")
            for n in range(MESSAGES)
        ],
        location=LOCATION,
    )


async def _delete(runtime: Runtime, _: Path) -> None:
    await runtime.deletions.delete(PARENT)


async def _finish_and_check(runtime: Runtime, site: Path) -> None:
    await runtime.deletions.finish()
    path = site / "perdure.db"
    rows = database_check.dump(path)
    kept = (site / OUTPUT_DIRECTORY / "tool_kept").exists()
    there = {
        one: {t for t, found in rows.items() if any(one in map(str, row) for row in found)}
        for one in (PARENT, CHILD, OTHER)
    }
    complete = {"event", "session", "session_message", "session_input"}
    assert there[OTHER] >= complete, there
    for one in (PARENT, CHILD):
        assert there[one] == set() or there[one] >= complete, there
    assert not there[CHILD] or there[PARENT], "a child without its parent"
    assert kept == bool(there[PARENT]), "the file goes with its Session"
    assert rows["session_deletion"] == []
    await database_check.check(path)


if __name__ == "__main__":
    sys.exit(main())
