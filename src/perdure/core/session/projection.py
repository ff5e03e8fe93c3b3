"""The folds behind every projection: (value, event) -> value.

Folding a Session's events from the first gives exactly what the projection tables hold; the store
runs these functions inside the transaction that appends the events. Nothing here reads or writes.
Updates that do not apply (a late result for a settled call) leave the value as it is.
"""

from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core.session import omission, title
from perdure.core.session.part_list import PartList
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import (
    AssistantEvent,
    MessageEvent,
    PartEvent,
    SessionEvent,
)
from perdure.schema.session.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
    Created,
    ModelSwitchedMessage,
    ReasoningPart,
    SessionMessage,
    ShellMessage,
    Span,
    StepSnapshot,
    SyntheticMessage,
    SystemMessage,
    TextPart,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.tool import (
    CallProvider,
    CompletedState,
    ErrorState,
    PartProvider,
    PendingState,
    RunningState,
)
from perdure.schema.session.usage import SessionBudget

LeavesSession = (
    PartEvent
    | events.SessionCreated
    | events.Deleted
    | events.Forked
    | events.PromptAdmitted
    | events.PromptRevised
    | events.PromptCancelled
    | events.InboxReordered
    | events.ContextUpdated
    | events.SyntheticAdded
    | events.ShellStarted
    | events.ShellEnded
    | events.StepStarted
    | events.TodosUpdated
    | events.Retried
    | events.CompactionStarted
    | events.CompactionEnded
    | events.CompactionReported
    | events.ExclusionEvent
)
"""`session_after` ignores these: an append of only these need not read the Session's row."""

_UserChange = (
    events.Moved
    | events.Renamed
    | events.Archived
    | events.Unarchived
    | events.BudgetChanged
    | events.RulesChanged
)
"""A decision of the user about the Session as a whole."""


def session_created(event: events.SessionCreated) -> SessionInfo:
    seed = event.info
    workspace = seed.workspace_id
    return SessionInfo(
        id=seed.id,
        parent_id=seed.parent_id,
        project_id=seed.project_id,
        agent=seed.agent,
        model=_with_variant(seed.model),
        # A float even if it was given as 0: the row must equal the one rebuilt from the log.
        cost=float(seed.cost),
        tokens=seed.tokens,
        time=seed.time,
        title=seed.title,
        location=LocationRef(directory=seed.directory, workspace_id=workspace),
        subpath=seed.path or UNSET,
        metadata=seed.metadata,
        permissions=seed.permissions,
    )


def session_after(info: SessionInfo, event: SessionEvent) -> SessionInfo:
    """Return the Session's own record as it is after `event`."""
    if isinstance(event, LeavesSession):
        return info
    match event:
        case events.AgentSwitched() | events.ModelSwitched() | events.ModelSubstituted():
            info = _answered_by(info, event)
        case (
            events.Moved()
            | events.Renamed()
            | events.Archived()
            | events.Unarchived()
            | events.BudgetChanged()
            | events.RulesChanged()
        ):
            info = _after_user_change(info, event)
        case events.PromptPromoted(prompt=prompt):
            info = _titled(info, prompt.text)
        case events.StepEnded(cost=cost, tokens=tokens) | events.Spent(cost=cost, tokens=tokens):
            info = replace(info, cost=info.cost + cost, tokens=info.tokens.plus(tokens))
        case events.RevertStaged(revert=revert):
            info = replace(info, revert=revert)
        case events.RevertCleared() | events.RevertCommitted():
            info = replace(info, revert=UNSET)
        case events.StepFailed():
            pass  # It only moves the time of activity.
        case _:
            assert_never(event)
    # Domain time is not monotonic in the log: a promotion carries its admission's.
    updated = max(info.time.updated, event.timestamp)
    return replace(info, time=replace(info.time, updated=updated))


def _answered_by(
    info: SessionInfo, event: events.AgentSwitched | events.ModelSwitched | events.ModelSubstituted
) -> SessionInfo:
    match event:
        case events.AgentSwitched(agent=agent):
            return replace(info, agent=agent, substitute=UNSET)
        case events.ModelSwitched(model=model):
            return replace(info, model=_with_variant(model), substitute=UNSET)
        case events.ModelSubstituted(substitute=substitute):
            return replace(info, substitute=substitute)


def _titled(info: SessionInfo, prompt: str) -> SessionInfo:
    if not title.is_placeholder(info.title):
        return info
    return replace(info, title=title.from_prompt(prompt) or info.title)


def _after_user_change(info: SessionInfo, event: _UserChange) -> SessionInfo:
    match event:
        case events.Moved(location=location, subdirectory=subdirectory):
            return replace(info, location=location, subpath=subdirectory or UNSET)
        case events.Renamed(title=chosen):
            return replace(info, title=chosen)
        case events.Archived(timestamp=now):
            return replace(info, time=replace(info.time, archived=now))
        case events.Unarchived():
            return replace(info, time=replace(info.time, archived=UNSET))
        case events.BudgetChanged(budget=budget):
            return replace(info, budget=UNSET if budget == SessionBudget() else budget)
        case events.RulesChanged(rules=rules):
            return replace(info, permissions=rules or UNSET)
        case _:
            assert_never(event)


def message_created(event: MessageEvent) -> SessionMessage:
    """Return the message that `event` adds to the transcript."""
    match event:
        case events.PromptPromoted(message_id=id, prompt=prompt):
            return UserMessage(
                id=id,
                time=Created(created=event.timestamp),
                text=prompt.text,
                files=prompt.files,
                agents=prompt.agents,
                attached=event.attached,
            )
        case events.StepStarted(assistant_message_id=id, agent=agent, model=model):
            snapshot = StepSnapshot(start=event.snapshot) if event.snapshot else UNSET
            return AssistantMessage(
                id=id,
                time=Span(created=event.timestamp),
                agent=agent,
                model=model,
                content=(),
                snapshot=snapshot,
                route=event.route,
            )
        case events.ContextUpdated(message_id=id, text=text):
            return SystemMessage(id=id, time=Created(created=event.timestamp), text=text)
        case _:
            return _rare_message_created(event)


def _rare_message_created(
    event: events.AgentSwitched
    | events.ModelSwitched
    | events.SyntheticAdded
    | events.ShellStarted
    | events.CompactionEnded,
) -> SessionMessage:
    match event:
        case events.AgentSwitched(message_id=id, agent=agent):
            return AgentSwitchedMessage(id=id, time=Created(created=event.timestamp), agent=agent)
        case events.ModelSwitched(message_id=id, model=model):
            return ModelSwitchedMessage(id=id, time=Created(created=event.timestamp), model=model)
        case events.SyntheticAdded(message_id=id, text=text, session_id=session_id):
            time = Created(created=event.timestamp)
            return SyntheticMessage(id=id, time=time, session_id=session_id, text=text)
        case events.ShellStarted(message_id=id, call_id=call_id, command=command):
            time = Span(created=event.timestamp)
            return ShellMessage(id=id, time=time, call_id=call_id, command=command, output="")
        case events.CompactionEnded():
            return _checkpoint(event)
        case _:
            assert_never(event)


def _checkpoint(event: events.CompactionEnded) -> CompactionMessage:
    return CompactionMessage(
        id=event.message_id,
        time=Created(created=event.timestamp),
        reason=event.reason,
        summary=event.text,
        recent=event.recent,
        directives=event.directives,
        todos=event.todos,
    )


def close_superseded(message: AssistantMessage, event: events.StepStarted) -> AssistantMessage:
    """Close a step that was open when a new one began: the process that ran it is gone."""
    if message.time.completed is not UNSET:
        return message
    return replace(message, time=replace(message.time, completed=event.timestamp))


def shell_after(message: ShellMessage, event: events.ShellEnded) -> ShellMessage:
    time = replace(message.time, completed=event.timestamp)
    return replace(message, output=event.output, time=time)


def assistant_after(message: AssistantMessage, *batch: AssistantEvent) -> AssistantMessage:
    """Return the message as it is after these events. Linear in its parts and the events."""
    parts = PartList(message.content)
    for event in batch:
        match event:
            case events.StepEnded():
                message = _ended(message, event)
            case events.StepFailed(error=error):
                time = replace(message.time, completed=event.timestamp)
                message = replace(message, time=time, finish="error", error=error)
            case _:
                apply_to_parts(parts, event)
    return replace(message, content=parts.content)


def apply_to_parts(parts: PartList, event: PartEvent) -> None:
    """Add or change the part that the event names."""
    match event:
        case events.TextStarted(text_id=id):
            parts.add(TextPart(id=id, text=""))
        case events.TextEnded(text_id=id, text=text):
            parts.change(TextPart, id, lambda part: replace(part, text=text))
        case events.ReasoningStarted(reasoning_id=id, provider_metadata=metadata):
            span = Span(created=event.timestamp)
            parts.add(ReasoningPart(id=id, text="", provider_metadata=metadata, time=span))
        case events.ReasoningEnded(reasoning_id=id):
            parts.change(ReasoningPart, id, lambda part: _reasoned(part, event))
        case events.ToolInputStarted(call_id=id, name=name):
            time = ToolTime(created=event.timestamp)
            parts.add(ToolPart(id=id, name=name, state=PendingState(input=""), time=time))
        case events.ToolPruned(call_id=id):
            parts.change(ToolPart, id, lambda part: omission.prune(part, event))
        case _:
            parts.change(ToolPart, event.call_id, lambda part: _call_after(part, event))


def _call_after(
    part: ToolPart,
    event: events.ToolInputEnded
    | events.ToolCalled
    | events.ToolProgressed
    | events.ToolSucceeded
    | events.ToolFailed,
) -> ToolPart:
    match event, part.state:
        case events.ToolInputEnded(text=text), PendingState():
            return replace(part, state=PendingState(input=text))
        case events.ToolCalled(input=input, provider=provider), PendingState():
            return replace(
                part,
                state=RunningState(input=input, structured={}, content=()),
                provider=PartProvider(executed=provider.executed, metadata=provider.metadata),
                time=replace(part.time, ran=event.timestamp),
            )
        case events.ToolProgressed(structured=structured, content=content), RunningState() as state:
            return replace(part, state=replace(state, structured=structured, content=content))
        case events.ToolSucceeded(), RunningState() as state:
            return _succeeded(part, state, event)
        case events.ToolFailed(), PendingState() | RunningState() as state:
            return _failed(part, state, event)
        case (
            events.ToolInputEnded()
            | events.ToolCalled()
            | events.ToolProgressed()
            | events.ToolSucceeded()
            | events.ToolFailed(),
            _,
        ):
            return part
        case _:
            assert_never(event)


def _succeeded(part: ToolPart, state: RunningState, event: events.ToolSucceeded) -> ToolPart:
    paths = () if event.output_paths is UNSET else event.output_paths
    completed = CompletedState(
        input=state.input,
        content=event.content,
        output_paths=paths,
        structured=event.structured,
        result=event.result,
    )
    return _settled(part, completed, event.provider, event.timestamp)


def _failed(
    part: ToolPart, state: PendingState | RunningState, event: events.ToolFailed
) -> ToolPart:
    running = isinstance(state, RunningState)
    failed = ErrorState(
        # A raw input that never became JSON is dropped: the field is an object from here on.
        input=state.input if running else {},
        content=state.content if running else (),
        structured=state.structured if running else {},
        error=event.error,
        result=event.result,
    )
    return _settled(part, failed, event.provider, event.timestamp)


def _settled(
    part: ToolPart, state: CompletedState | ErrorState, provider: CallProvider, timestamp: int
) -> ToolPart:
    before = part.provider
    return replace(
        part,
        state=state,
        provider=PartProvider(
            executed=provider.executed or (before is not UNSET and before.executed),
            metadata=UNSET if before is UNSET else before.metadata,
            result_metadata=provider.metadata,
        ),
        time=replace(part.time, completed=timestamp),
    )


def _reasoned(part: ReasoningPart, event: events.ReasoningEnded) -> ReasoningPart:
    started = event.timestamp if part.time is UNSET else part.time.created
    given = event.provider_metadata
    return replace(
        part,
        text=event.text,
        provider_metadata=part.provider_metadata if given is UNSET else given,
        time=Span(created=started, completed=event.timestamp),
    )


def _ended(message: AssistantMessage, event: events.StepEnded) -> AssistantMessage:
    snapshot = message.snapshot
    if event.snapshot is not UNSET or event.files is not UNSET:
        start = UNSET if snapshot is UNSET else snapshot.start
        snapshot = StepSnapshot(start=start, end=event.snapshot, files=event.files)
    return replace(
        message,
        time=replace(message.time, completed=event.timestamp),
        finish=event.finish,
        cost=float(event.cost),
        tokens=event.tokens,
        snapshot=snapshot,
    )


def _with_variant(model: ModelRef | UnsetType) -> ModelRef | UnsetType:
    if model is UNSET:
        return UNSET
    return replace(model, variant=model.variant_name)
