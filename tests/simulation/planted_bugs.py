"""Defects that the simulation must find: each an edit of one symbol of the package.

They are mistakes that a programmer would really make: a forgotten case, a missing shield, an effect
before its record. `promise` is what the report must name, as a pattern.
"""

from dataclasses import dataclass
from typing import Final

from tests.harness.planting.defect import Defect
from tests.harness.planting.edit import (
    After,
    Assign,
    Before,
    Define,
    DropKeyword,
    Instead,
    ReplaceCall,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug(Defect):
    promise: str
    first: int = 0
    """The seed to begin with: a rare bug is found later than most."""


PLANTED_BUGS: Final = (
    PlantedBug(
        name="a part's end is not projected",
        symbol="store.log.projector:_Fold._apply_to_assistant",
        edit=Before("if isinstance(event, events.TextEnded):\n    return"),
        promise="P5",
    ),
    PlantedBug(
        name="a batch with several messages forgets the Session's own row",
        symbol="store.log.projector:_Fold.write",
        edit=Before("if len(self._created) > 1:\n    self._session_changed = False"),
        promise="P5",
    ),
    PlantedBug(
        name="events are announced before their commit",
        symbol="store.database.sqlite:SqliteDatabase._run_one",
        edit=After("notify_listener(queued)"),
        promise="P1",
    ),
    PlantedBug(
        name="a wake during a run is lost",
        symbol="runtime.coordination.coordinator:RunCoordinator.wake",
        edit=Before(
            "if session_id in self._entries and not self._entries[session_id].stopping:\n    return"
        ),
        promise="P1",
        first=20,
    ),
    PlantedBug(
        name="an interrupt leaves what waits to be run",
        symbol="store.tables.attempt_table:stop",
        edit=Instead("return"),
        promise="P1",
    ),
    PlantedBug(
        name="a promotion leaves its prompt pending",
        symbol="store.tables.inbox_table:mark_promoted",
        edit=Instead("return True"),
        promise="defect",
    ),
    PlantedBug(
        name="a run appends without its fence",
        symbol="runtime.turn.step_log:StepLog._append",
        edit=DropKeyword("append", "running"),
        promise="P8",
        first=9,
    ),
    PlantedBug(
        name="a lease is taken from a living process",
        symbol="store.processes.lease_table:hold",
        edit=Before("alive = lambda process: False"),
        promise="P2|P4|P8|defect",
        first=4,
    ),
    PlantedBug(
        name="an interrupt cuts the settlement of a tool that succeeded",
        symbol="runtime.turn.tool_execution:shielded",
        edit=Define("async def shielded(work):\n    return await work"),
        promise="P4",
        first=17,
    ),
    PlantedBug(
        name="a tool runs before its call is recorded",
        symbol="runtime.turn.step_log:StepLog._commit",
        edit=ReplaceCall("_append", "asyncio.create_task(CALL)"),
        promise="P3|P4",
    ),
    PlantedBug(
        name="facts that do not fit one transaction are dropped",
        symbol="runtime.turn.step_log:StepLog._commit",
        edit=Before("self._waiting = list(self._store.first_piece(self._waiting))"),
        promise="P2",
    ),
    PlantedBug(
        name="the end of a step overtakes facts that wait",
        symbol="runtime.turn.step_log:StepLog.add",
        edit=Instead("self._waiting[:0] = facts"),
        promise="P2",
    ),
    PlantedBug(
        name="a reader's cursor is one behind",
        symbol="store.log.follow:EventFollowers.follow",
        edit=Assign("seen", "Seq(last - 1)"),
        promise="P3",
    ),
    PlantedBug(
        name="a change of context is noted and not told",
        symbol="runtime.turn.boundary:_reconcile",
        edit=DropKeyword("_ContextChange", "update"),
        promise="S30",
    ),
    PlantedBug(
        name="another body under a used id is taken for a retry",
        symbol="core.session.inbox:reconcile",
        edit=Instead("return stored"),
        promise="P1",
    ),
    PlantedBug(
        name="a compaction does not cut the history",
        symbol="core.session.history:visible",
        edit=Before("compaction = None"),
        promise="P7",
        first=15,
    ),
    PlantedBug(
        name="a compaction does not end the epoch",
        symbol="runtime.turn.boundary:_reconcile",
        edit=Assign("compacted", "False"),
        promise="P7",
        first=15,
    ),
    PlantedBug(
        name="a compaction that a turn needs ends without having begun",
        symbol="runtime.compaction.compactor:Compactor._begin",
        edit=Before('if job.reason == "auto":\n    return self._services.ids.message()'),
        promise="S36",
        first=15,
    ),
    PlantedBug(
        name="an excluded prompt is condensed all the same",
        symbol="core.compaction.transcript:text_of",
        edit=Before("message = omission.whole(message)"),
        promise="S36",
        first=42,
    ),
    PlantedBug(
        name="a history that is kept does not learn of an exclusion",
        symbol="runtime.turn.history_cache:_load_fresh",
        edit=Instead("return await message_table.list_following(tx, session_id, kept.last)"),
        promise="P7",
    ),
    PlantedBug(
        name="two calls of a conversation have one id",
        symbol="core.request.conversation:_derive_id",
        edit=Instead("return call_id"),
        promise="P6",
    ),
    PlantedBug(
        name="a pruned result is sent all the same",
        symbol="core.session.omission:prune",
        edit=Instead("return part"),
        promise="P2",
        first=9,
    ),
    PlantedBug(
        name="a revert leaves a message behind",
        symbol="store.tables.message_table:delete_after",
        edit=Before("seq += 3"),
        promise="P5",
        first=4,
    ),
    PlantedBug(
        name="a prompt is admitted although a revert is staged",
        symbol="runtime.session.admission:_check_no_revert",
        edit=ReplaceCall("is_reverting", "False"),
        promise="P1",
        first=4,
    ),
    PlantedBug(
        name="what a settled call has asked stays written down",
        symbol="store.tables.pending_table:remove_of_call",
        edit=Instead("return"),
        promise="P4",
        first=6,
    ),
    PlantedBug(
        name="a request goes out before its mark is on disk",
        symbol="runtime.turn.request_marks:RequestMarks.mark_dispatched",
        edit=Instead("return"),
        promise="P4",
    ),
    PlantedBug(
        name="what may have been sent is sent again by itself",
        symbol="core.session.recovery:classify",
        edit=ReplaceCall("Unclear", "SendRequest(attempt.step)"),
        promise="P4",
        first=9,
    ),
    PlantedBug(
        name="a revert leaves a later list in force",
        symbol="store.tables.todo_table:delete_without_message",
        edit=Instead("return"),
        promise="P5",
        first=404,
    ),
    PlantedBug(
        name="the end of a task is never told",
        symbol="runtime.background.subagents:Subagents._record_endings",
        edit=ReplaceCall("_notices.put", "False"),
        promise="P4",
        first=3,
    ),
    PlantedBug(
        name="prompts are put in the opposite of the order that was asked for",
        symbol="store.tables.inbox_table:_reorder",
        edit=Before("message_ids = message_ids[::-1]"),
        promise="S69",
        first=141,
    ),
    PlantedBug(
        name="an answer for which no memory is left leaves its step open",
        symbol="runtime.turn.step_settlement:StepSettlement._settle_step",
        edit=Before("if 'no memory left' in reason:\n    return"),
        promise="P2|P4",
    ),
    PlantedBug(
        name="a revised prompt still says what it said",
        symbol="store.tables.inbox_table:_revise",
        edit=Before(
            'sql = "SELECT prompt_seq FROM session_input WHERE id = :id"\n'
            '((prompt_seq,),) = await tx.fetch(sql, {"id": event.message_id})'
        ),
        promise="P1",
    ),
    PlantedBug(
        name="what cannot be looked at counts as gone",
        symbol="host.files.cached_files:_status",
        edit=Instead(
            "try:\n    return os.stat(path)\nexcept (OSError, ValueError):\n    return None"
        ),
        promise="S44",
    ),
    PlantedBug(
        name="a step that a dead process left counts as progress",
        symbol="store.tables.attempt_table:settle",
        edit=Before("ended = True"),
        promise="P4",
    ),
)
