"""Goes on with the step that a process left open: decides about each call that it had made.

A call that still waits for a person's answer goes on waiting, or acts on the answer that it got
meanwhile. One of a tool that declares itself pure or idempotent is run again. Any other may have
had its effect: it is settled with a text that says so, and with what the file journal knows of it,
so that the model knows too.

Invariant: a call of a tool that is `once` is not begun a second time.
"""

from collections.abc import Sequence

from msgspec import UNSET

from perdure.core.files.revert import FileChange
from perdure.core.session import recovery, subagent
from perdure.core.session.recovery import INTERRUPTED, OUTCOME_UNKNOWN
from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.core.session.turn_recorder import TurnRecorder
from perdure.location.location import Location
from perdure.ports import Transaction
from perdure.runtime.drain.cut_step import CutStep, LostCall
from perdure.runtime.drain.turn import TurnServices
from perdure.runtime.files.step_journal import display_path, resolve_root
from perdure.runtime.turn import tool_runs
from perdure.runtime.turn.turn_end import TurnEnd
from perdure.schema import codec
from perdure.schema.ids import Seq, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent, ToolCalled
from perdure.schema.session.message import AssistantMessage, ToolPart
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.tool import CallProvider, PendingState, RunningState
from perdure.schema.value import Value
from perdure.store.tables import (
    file_change_table,
    message_table,
    pending_table,
    session_table,
    task_table,
)
from perdure.store.tables.pending_table import PendingRow
from perdure.tools.api.registry import TurnTools


class _Cut(Value, kw_only=True):
    """A step as its process left it."""

    session: SessionInfo
    step: AssistantMessage
    seq: Seq
    """Where the step begins."""
    callers: tuple[str, ...]
    snapshot: str | None
    """The newest file snapshot of the Session."""
    changes: tuple[FileChange, ...]
    """What the journal has of the step."""
    requests: tuple[PendingRow, ...]
    """What the calls of the step have asked a person."""

    def may_run(self, call: ToolCalled, tools: TurnTools, *, only_asked: bool) -> bool:
        """Whether the call has not begun to act, or may act twice."""
        if self.is_asked(call, tools) or only_asked:
            return self.is_asked(call, tools)
        return tools.effect(call.tool) in ("pure", "idempotent")

    def is_asked(self, call: ToolCalled, tools: TurnTools) -> bool:
        """Whether the call has yet to go on with the answer of a person, and may."""
        asked = [row for row in self.requests if row.call_id == call.call_id]
        used = any(row.used for row in asked)
        return any(row.waits for row in asked) and (not used or tools.asks_first(call.tool))


class CutSteps:
    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._run = services.run
        self._database = services.run.store.database

    async def resume(
        self, session_id: SessionID, *, step: int, orphans: Sequence[str], only_asked: bool = False
    ) -> TurnEnd | None:
        """See the newest step to its end if it is open and has calls. `step` is its number.

        `orphans`: what its process ran for the Session and could not be ended. `only_asked`: too
        many processes have died, and only the calls that wait for a person go on.
        """
        cut = await self._database.read(lambda tx: _load(tx, session_id))
        if cut is None:
            return None
        async with self._run.locations.hold(cut.session.location, session=session_id) as location:
            tools = await _offered(cut, location)
            again: list[ToolCalled] = []
            lost: list[LostCall] = []
            for call, made in _open_calls(cut):
                if not made:
                    lost.append(LostCall(call, INTERRUPTED))
                elif cut.may_run(call, tools, only_asked=only_asked):
                    again.append(call)
                else:
                    lost.append(LostCall(call, await self._tell(cut, call, tools, orphans)))
            ends = await self._end_parts(cut)
            asked = any(cut.is_asked(call, tools) for call in again)
            cut_step = self._step(cut, location, tools, step=step)
            return await cut_step.resume(again, lost, ends, asked=asked)

    def _step(self, cut: _Cut, location: Location, tools: TurnTools, *, step: int) -> CutStep:
        session_id, message = cut.session.id, cut.step
        recorder = TurnRecorder(
            session_id=session_id, message_id=message.id, agent=message.agent, model=message.model
        )
        recorder.restore(message)
        journal = tool_runs.journal(self._run, location, session_id, message.id, start=cut.snapshot)
        self._services.marks.take_charge(session_id)
        return CutStep(
            self._run,
            self._services.marks,
            cut.session,
            step=step,
            recorder=recorder,
            tools=tool_runs.build(
                self._run,
                location,
                tools,
                agent=message.agent,
                callers=cut.callers,
                journal=journal,
                repeated_calls=RepeatedCallGuard(),
                reads_documents=False,
            ),
            cost=lambda _: 0.0,
            journal=journal,
        )

    async def _end_parts(self, cut: _Cut) -> list[SessionEvent]:
        """End the texts that were streaming after the calls; what they had said is lost."""
        now, session_id, message_id = self._run.clock.now_millis(), cut.session.id, cut.step.id
        open_parts: dict[tuple[str, str], SessionEvent] = {}
        store, after = self._run.store, Seq(cut.seq - 1)
        recorded = await store.read(
            session_id, after=after, limit=await store.latest(session_id) - after
        )
        for _, _, event in recorded:
            match event:
                case events.TextStarted(text_id=part):
                    end = events.TextEnded(now, session_id, message_id, text_id=part, text="")
                    open_parts["text", part] = end
                case events.ReasoningStarted(reasoning_id=part):
                    open_parts["reasoning", part] = events.ReasoningEnded(
                        now, session_id, message_id, reasoning_id=part, text=""
                    )
                case events.TextEnded(text_id=part):
                    open_parts.pop(("text", part), None)
                case events.ReasoningEnded(reasoning_id=part):
                    open_parts.pop(("reasoning", part), None)
                case _:
                    pass
        return [*open_parts.values()]

    async def _tell(
        self, cut: _Cut, call: ToolCalled, tools: TurnTools, orphans: Sequence[str]
    ) -> str:
        """What the model is told about a call that is not run again."""
        if tools.effect(call.tool) != "reconcilable":
            return recovery.tell_unknown(orphans)
        root = resolve_root(cut.session.location.directory)
        known = [
            f"{display_path(change.path, root)}: {await self._outcome(change)}"
            for change in _changes_of(call, cut.changes, root)
        ]
        if not known:
            return f"{OUTCOME_UNKNOWN} The file journal has no change of it, so: not applied."
        return "\n".join([f"{OUTCOME_UNKNOWN} The file journal says:", *known])

    async def _outcome(self, change: FileChange) -> str:
        try:
            now = await self._run.snapshots.look(change.root, change.path)
        except OSError:
            return "the file cannot be read now"
        if now.same(change.after):
            return "applied"
        return "not applied" if now.same(change.before) else "changed since"


async def _load(tx: Transaction, session_id: SessionID) -> _Cut | None:
    newest = await message_table.latest_conversation_message(tx, session_id)
    step = None if newest is None else newest.message()
    if newest is None or not isinstance(step, AssistantMessage):
        return None
    if recovery.find_cut_step([step]) is None or not recovery.has_calls(step):
        return None
    session = await session_table.require(tx, session_id)
    return _Cut(
        session=session,
        step=step,
        seq=newest.seq,
        callers=await task_table.agents_above(tx, session),
        snapshot=await file_change_table.latest_snapshot(tx, session_id),
        changes=tuple(await file_change_table.list_of_step(tx, session_id, step.id)),
        requests=tuple(await pending_table.list_of_step(tx, session_id, step.id)),
    )


async def _offered(cut: _Cut, location: Location) -> TurnTools:
    """The tools that the agent of the step may use now; none if there is no such agent."""
    agent = location.agents.select(cut.step.agent)
    registry = location.tools.registry()
    if agent is None:
        return TurnTools(registry, {})
    bounds = subagent.inherited_rules(cut.callers, location.agents.rules)
    await location.mcp.prepare()
    listed = await location.mcp.current()
    own = location.permissions.session_bounds(cut.session.permissions)
    return registry.materialize(location.agents.rules(agent.id), *bounds, *own, listed=listed)


def _open_calls(cut: _Cut) -> list[tuple[ToolCalled, bool]]:
    """The calls that this program was to run, and whether each had been made."""
    return [
        (_call(cut, part), isinstance(part.state, RunningState))
        for part in cut.step.content
        if isinstance(part, ToolPart)
        and isinstance(part.state, PendingState | RunningState)
        and (part.provider is UNSET or not part.provider.executed)
    ]


def _call(cut: _Cut, part: ToolPart) -> ToolCalled:
    return ToolCalled(
        timestamp=cut.step.time.created,
        session_id=cut.session.id,
        assistant_message_id=cut.step.id,
        call_id=ToolCallID(part.id),
        tool=part.name,
        input=part.state.input if isinstance(part.state, RunningState) else {},
        provider=CallProvider(executed=False),
    )


def _changes_of(call: ToolCalled, changes: Sequence[FileChange], root: str) -> list[FileChange]:
    """The changes of a step that a call may have made: those of the paths that its input names."""
    said = codec.encode(call.input).decode()
    return [
        change
        for change in changes
        if change.path in said or display_path(change.path, root) in said
    ]
