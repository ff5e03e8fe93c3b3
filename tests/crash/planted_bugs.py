"""Defects in recovery that the sweep over crash points must find: each an edit of one symbol."""

from dataclasses import dataclass
from typing import Final

from tests.harness.planting.defect import Defect
from tests.harness.planting.edit import After, Before, Instead, ReplaceCall


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptBug(Defect):
    killed_at: str
    """The points at which the process is killed, by a part of their name."""
    verdict: str
    """What the sweep must say."""


SWEPT_BUGS: Final = (
    SweptBug(
        name="calls that a dead process left open stay open",
        symbol="runtime.drain.cut_steps:_open_calls",
        edit=Instead("return []"),
        killed_at="tool/done[note]",
        verdict="P4: ",
    ),
    SweptBug(
        name="an answer that was cut off stays open",
        symbol="core.session.recovery:fail_open_step",
        edit=Instead("return ()"),
        killed_at="model/delivered[TextDelta]#1",
        verdict="P4: ",
    ),
    SweptBug(
        name="what may have been sent is sent again",
        symbol="core.session.recovery:classify",
        edit=ReplaceCall("Unclear", "SendRequest(attempt.step)"),
        killed_at="model/delivered[TextStart]#1",
        verdict="1 requests were sent again, and a person wanted 0 of them",
    ),
    SweptBug(
        name="a request goes out without its mark",
        symbol="runtime.turn.request_marks:RequestMarks.mark_dispatched",
        edit=Instead("return"),
        killed_at="model/delivered[TextStart]#1",
        verdict="1 requests were sent again, and a person wanted 0 of them",
    ),
    SweptBug(
        name="a run whose tools are settled is forgotten",
        symbol="store.tables.attempt_table:settle",
        edit=Instead("await clear(tx, session_id)"),
        killed_at="write/committed[tool.success+step.ended]",
        verdict="no beginning of the whole one",
    ),
    SweptBug(
        name="a call that is to be made once is made again",
        symbol="tools.api.registry:TurnTools.effect",
        edit=Instead('return "pure"'),
        killed_at="tool/done[note]#1",
        verdict="was made 2 times",
    ),
    SweptBug(
        name="an event is committed apart from what is made of it",
        symbol="store.log.projector:project",
        edit=Before('await tx.execute("COMMIT")\nawait tx.execute("BEGIN IMMEDIATE")'),
        killed_at="write/statement[session_input]#1",
        verdict="P1: msg_hello was admitted twice",
    ),
    SweptBug(
        name="an event is announced before its commit",
        symbol="store.log.event_store:EventStore.append.job",
        edit=After("self.announce(session_id, stored, location)"),
        killed_at="write/in-transaction[prompt.admitted]#1",
        verdict="was announced and is not in the log",
    ),
)
