"""What the tool calls of a step are run with: built for a turn, and for a step that was cut."""

from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.location.location import Location
from perdure.runtime.files.step_journal import StepJournal, UnjournaledStep
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.tool_execution import ToolRun
from perdure.schema.ids import MessageID, SessionID
from perdure.tools.api.registry import TurnTools


def build(
    services: RunServices,
    location: Location,
    tools: TurnTools,
    *,
    agent: str,
    callers: tuple[str, ...],
    journal: StepJournal | UnjournaledStep,
    repeated_calls: RepeatedCallGuard,
    reads_documents: bool,
) -> ToolRun:
    return ToolRun(
        tools=tools,
        agent=agent,
        callers=callers,
        outputs=services.outputs,
        limits=location.output_limits,
        instructions_beside=location.instructions.find_for_file,
        permissions=location.permissions,
        repeated_calls=repeated_calls,
        journal=journal,
        metrics=services.measures,
        reads_documents=reads_documents,
    )


def journal(
    services: RunServices,
    location: Location,
    session_id: SessionID,
    message_id: MessageID,
    *,
    start: str | None,
) -> StepJournal | UnjournaledStep:
    """The journal of a step; `start` is the newest file snapshot of the Session."""
    if not location.settings.snapshots:
        return UnjournaledStep()
    return StepJournal(
        services.snapshots,
        session_id,
        message_id,
        root=location.ref.directory,
        start=start,
    )
