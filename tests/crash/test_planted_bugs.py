"""The sweep bites: defects in recovery, each planted in a copy of the source, are found."""

from pathlib import Path
from typing import Final

import pytest

from tests.crash import command
from tests.figures import Figure
from tests.simulation.planted_bugs import PlantedBug
from tests.simulation.test_planted_bugs import plant

BUGS: Final = (
    (
        "tool/done[note]",
        PlantedBug(
            name="calls that a dead process left open stay open",
            file="core/session/recovery.py",
            before="isinstance(part.state, PendingState | RunningState)",
            after="isinstance(part.state, PendingState)",
            promise="P4: ",
        ),
    ),
    (
        "model/delivered[TextDelta]#1",
        PlantedBug(
            name="an answer that was cut off stays open",
            file="core/session/recovery.py",
            before="if newest is None or newest.time.completed is not UNSET:",
            after="if newest is None or newest.time.completed is UNSET:",
            promise="P4: ",
        ),
    ),
    (
        "model/delivered[TextStart]#1",
        PlantedBug(
            name="what may have been sent is sent again",
            file="core/session/recovery.py",
            before="            return GiveUp() if attempt.abandoned else Unclear(attempt.step)\n",
            after="            return SendRequest(attempt.step)\n",
            promise="1 requests were sent again, and a person wanted 0 of them",
        ),
    ),
    (
        "model/delivered[TextStart]#1",
        PlantedBug(
            name="a request goes out without its mark",
            file="runtime/turn/provider_turn.py",
            before="            await self._attempt.dispatch()\n",
            after="",
            promise="1 requests were sent again, and a person wanted 0 of them",
        ),
    ),
    (
        "write/committed[tool.success+step.ended]",
        PlantedBug(
            name="a run whose tools are settled is forgotten",
            file="store/tables/attempt_table.py",
            before="    if not continues:\n",
            after="    if continues or not continues:\n",
            promise="no beginning of the whole one",
        ),
    ),
    (
        "write/statement[session_input]#1",
        PlantedBug(
            name="an event is committed apart from what is made of it",
            file="store/log/event_store.py",
            before="            await projector.project(tx, session_id, first, events)\n",
            after=(
                "            await tx.execute('COMMIT')\n"
                "            await tx.execute('BEGIN IMMEDIATE')\n"
                "            await projector.project(tx, session_id, first, events)\n"
            ),
            promise="P1: msg_hello was admitted twice",
        ),
    ),
    (
        "write/in-transaction[prompt.admitted]#1",
        PlantedBug(
            name="an event is announced before its commit",
            file="store/log/event_store.py",
            before="            return Appended(stored, lease, number)\n",
            after=(
                "            self.announce(session_id, stored, location)\n"
                "            return Appended(stored, lease, number)\n"
            ),
            promise="was announced and is not in the log",
        ),
    ),
)


@pytest.mark.parametrize(("at", "bug"), BUGS, ids=[bug.name for _, bug in BUGS])
def test_a_planted_bug_is_found_at_the_points_it_concerns(
    at: str, bug: PlantedBug, tmp_path: Path, figure: Figure
) -> None:
    plant(bug, tmp_path)
    swept = command.sweep("--like", at, package=tmp_path)
    assert swept.returncode == 1, swept.stderr or "no death brought it to light"
    assert bug.promise in swept.stdout
    assert "repeat with: python -m tests.crash.sweep --point " in swept.stdout
    figure("planted bugs caught", 1)
