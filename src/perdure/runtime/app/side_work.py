"""Work beside the runs: Jobs and Tasks, and the Notices by which Sessions hear of them.

Joined here and loaded with the engine; how each of them works stands in its own module.
"""

from functools import partial

from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.process.detached import LocalDetached
from perdure.runtime.app.parts import EngineDeps, Platform
from perdure.runtime.background.job_monitor import JobMonitorDeps
from perdure.runtime.background.jobs import Jobs
from perdure.runtime.background.notices import Notices
from perdure.runtime.background.subagents import Subagents, SubagentServices
from perdure.runtime.tasks import Background
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.tools.api.output_store import ToolOutputStore


class SideWork(Value, kw_only=True):
    notices: Notices
    jobs: Jobs
    subagents: Subagents


def join(parts: EngineDeps, outputs: ToolOutputStore, background: Background) -> SideWork:
    on = parts.on
    notices = Notices(parts.store, wake=partial(_wake, parts))
    return SideWork(
        notices=notices,
        jobs=Jobs(
            _watching(on, notices),
            outputs=outputs,
            ids=on.ids,
            processes=on.processes,
            background=lambda work: background.start(work, name="job"),
        ),
        subagents=Subagents(
            SubagentServices(
                store=parts.store,
                coordinator=parts.coordinator,
                notices=notices,
                processes=on.processes,
                clock=on.clock,
            )
        ),
    )


def _watching(on: Platform, notices: Notices) -> JobMonitorDeps:
    return JobMonitorDeps(
        database=on.database,
        notices=notices,
        detached=on.detached or LocalDetached(),
        filesystem=LocalFilesystem(),
        clock=on.clock,
    )


def _wake(parts: EngineDeps, session_id: SessionID) -> None:
    """Run a Session that has something to hear. A mere visitor leaves that to who comes next."""
    if parts.settings.resumes or session_id in parts.coordinator.active:
        parts.wake(session_id)
