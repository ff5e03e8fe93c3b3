"""Work beside the runs: Jobs and Tasks, and the Notices by which Sessions hear of them.

Joined here and loaded with the engine; how each of them works stands in its own module.
"""

from functools import partial

from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.process.detached import LocalDetached
from perdure.runtime.app.parts import Foundations, Parts
from perdure.runtime.background.job_monitor import Watching
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


def join(parts: Parts, outputs: ToolOutputStore, background: Background) -> SideWork:
    on = parts.on
    notices = Notices(parts.store, on.clock, wake=partial(_wake, parts))
    return SideWork(
        notices=notices,
        jobs=Jobs(
            _watching(on, notices),
            outputs=outputs,
            ids=on.ids,
            neighbours=on.neighbours,
            background=lambda work: background.start(work, name="job"),
        ),
        subagents=Subagents(
            SubagentServices(
                store=parts.store,
                coordinator=parts.coordinator,
                notices=notices,
                neighbours=on.neighbours,
                clock=on.clock,
            )
        ),
    )


def _watching(on: Foundations, notices: Notices) -> Watching:
    return Watching(
        database=on.database,
        notices=notices,
        processes=on.detached or LocalDetached(),
        filesystem=LocalFilesystem(),
        clock=on.clock,
    )


def _wake(parts: Parts, session_id: SessionID) -> None:
    """Run a Session that has something to hear. A mere visitor leaves that to who comes next."""
    if parts.settings.resumes or session_id in parts.coordinator.active:
        parts.wake(session_id)
