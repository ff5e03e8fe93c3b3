"""Defects that the simulator must find: each a line of the source, and what it becomes.

They are the mistakes that one would really make: a forgotten case, a missing shield, an effect
before its record. `promise` is what the report must name, as a pattern.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PlantedBug:
    name: str
    file: str
    """Below the package."""
    before: str
    after: str
    promise: str
    first: int = 0
    """The seed to begin with: a rare one is found later than most."""


PLANTED_BUGS: Final = (
    PlantedBug(
        name="a part's end is not projected",
        file="store/log/projector.py",
        before="(events.StepEnded, events.StepFailed, *_PARTS)",
        after="(events.StepEnded, events.StepFailed, _PARTS[0], *_PARTS[2:])",
        promise="P5",
    ),
    PlantedBug(
        name="a batch with several messages forgets the Session's own row",
        file="store/log/projector.py",
        before="        if self._session_changed:\n",
        after="        if self._session_changed and len(self._created) < 2:\n",
        promise="P5",
    ),
    PlantedBug(
        name="events are announced before their commit",
        file="store/database/sqlite.py",
        before="        queued.error = outcome.error\n",
        after="        queued.error = outcome.error\n        _notify_listener(queued)\n",
        promise="P1",
    ),
    PlantedBug(
        name="a wake during a run is lost",
        file="runtime/coordination/coordinator.py",
        before="            entry.pending_wake = True\n",
        after="            entry.pending_wake = entry.stopping\n",
        promise="P1",
        first=20,
    ),
    PlantedBug(
        name="a promotion leaves its prompt pending",
        file="store/tables/inbox_table.py",
        before='"UPDATE session_input SET promoted_seq = :seq"',
        after='"UPDATE session_input SET promoted_seq = nullif(:seq, :seq)"',
        promise="defect",
    ),
    PlantedBug(
        name="a run appends without its fence",
        file="runtime/turn/provider_turn.py",
        before="""\
running=True,
                within=within if brought is not None or settles else None,""",
        after="within=within if brought is not None or settles else None,",
        promise="P8",
        first=9,
    ),
    PlantedBug(
        name="a lease is taken from a living process",
        file="store/processes/lease_table.py",
        before="found.process != RELEASED and alive(found.process)",
        after="found.process != RELEASED and alive(process) is False",
        promise="P4|P8",
    ),
    PlantedBug(
        name="an interrupt cuts the settlement of a tool that succeeded",
        file="runtime/turn/tool_execution.py",
        before="            await shielded(self._bound_and_record(call, settled))",
        after="            await self._bound_and_record(call, settled)",
        promise="P4",
        first=17,
    ),
    PlantedBug(
        name="a tool runs before its call is recorded",
        file="runtime/turn/provider_turn.py",
        before="            await self._append(events)\n        for event in events:",
        after="            group.create_task(self._append(events))\n        for event in events:",
        promise="P3|P4",
    ),
    PlantedBug(
        name="a reader's cursor is one behind",
        file="store/log/follow.py",
        before="                    seen = last\n",
        after="                    seen = Seq(last - 1)\n",
        promise="P3",
    ),
    PlantedBug(
        name="a change of context is noted and not told",
        file="runtime/turn/boundary.py",
        before="        if admission.told is not None:\n",
        after="        if admission.told is not None and not admission.stored:\n",
        promise="S30",
    ),
    PlantedBug(
        name="another body under a used id is taken for a retry",
        file="core/session/inbox.py",
        before="    if not same:\n",
        after="    if not same and stored.id != asked.id:\n",
        promise="P1",
    ),
    PlantedBug(
        name="a compaction does not cut the history",
        file="core/session/history.py",
        before="    if compaction is None or seq >= compaction:\n",
        after="    if compaction is None or seq >= 0:\n",
        promise="P7",
        first=15,
    ),
    PlantedBug(
        name="a compaction does not end the epoch",
        file="runtime/turn/boundary.py",
        before="sample.compaction is not None and sample.compaction > epoch.baseline_seq",
        after="sample.compaction is not None and sample.compaction > sample.cutoff",
        promise="P7",
        first=15,
    ),
    PlantedBug(
        name="a compaction that a turn needs ends without having begun",
        file="runtime/compaction/compactor.py",
        before="            return False\n        message_id = await self._begin(job)\n",
        after="            return False\n        message_id = self._services.ids.message()\n",
        promise="S36",
        first=15,
    ),
    PlantedBug(
        name="a revert leaves a message behind",
        file="store/log/projector.py",
        before="await message_table.delete_after(self._tx, self._session_id, boundary.seq)",
        after="await message_table.delete_after(self._tx, self._session_id, Seq(boundary.seq + 3))",
        promise="P5",
        first=4,
    ),
    PlantedBug(
        name="a prompt is admitted although a revert is staged",
        file="runtime/session/admission.py",
        before="            if await session_table.is_reverting(tx, asked.session_id):\n",
        after="            if supplied is None:\n",
        promise="P1",
        first=4,
    ),
    PlantedBug(
        name="what a dead process waited for stays written down",
        file="store/tables/pending_table.py",
        before="for row in await list_all(tx) if not alive(row.process)]",
        after="for row in await list_all(tx) if row.answer is not None]",
        promise="P4",
        first=7,
    ),
    PlantedBug(
        name="a settled permission stays written down",
        file="location/approval/permissions.py",
        before="        if settled:\n",
        after="        if len(settled) > 1:\n",
        promise="P4",
    ),
    PlantedBug(
        name="an answered question stays written down",
        file="location/approval/questions.py",
        before="            await self._store.remove([pending.request.id])\n        outcome",
        after="            pass\n        outcome",
        promise="P4",
    ),
    PlantedBug(
        name="a request goes out before its mark is on disk",
        file="runtime/turn/provider_turn.py",
        before="            await self._attempt.dispatch()\n",
        after="",
        promise="P4",
    ),
    PlantedBug(
        name="what may have been sent is sent again by itself",
        file="core/session/recovery.py",
        before="            return GiveUp() if attempt.abandoned else Unclear(attempt.step)\n",
        after="            return GoOn(attempt.step)\n",
        promise="P4",
        first=9,
    ),
    PlantedBug(
        name="a revert leaves a later list in force",
        file="store/tables/todo_table.py",
        before='"DELETE FROM todo WHERE session_id = :id AND NOT EXISTS"',
        after='"DELETE FROM todo WHERE session_id = :id AND seq < 0 AND NOT EXISTS"',
        promise="P5",
        first=26,
    ),
    PlantedBug(
        name="the end of a task is told to nobody",
        file="runtime/background/subagents.py",
        before="            if await self._notices.put(tx, await self._notice(tx, task, report)):",
        after="            if not await self._notice(tx, task, report):",
        promise="P4",
        first=3,
    ),
    PlantedBug(
        name="prompts are put in the opposite of the order that was asked for",
        file="store/tables/inbox_table.py",
        before="    for message_id, position in zip(moved, free, strict=True):\n",
        after="    for message_id, position in zip(moved, free[::-1], strict=True):\n",
        promise="S69",
        first=57,
    ),
    PlantedBug(
        name="a revised prompt still says what it said",
        file="store/tables/inbox_table.py",
        before='"UPDATE session_input SET delivery = :delivery, prompt_seq = :seq"',
        after='"UPDATE session_input SET delivery = :delivery, prompt_seq = min(prompt_seq, :seq)"',
        promise="P1",
    ),
)
