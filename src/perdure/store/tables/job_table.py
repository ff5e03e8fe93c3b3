"""Background jobs: operational state, kept until their Session is deleted.

A row is written before its command runs and is settled in the transaction of the notice that
reports it. Each update names the state it expects, so of two processes that settle a job one does.
"""

from typing import Final, cast

from perdure.core.session.job import DetachedProcess, Ending, Job
from perdure.ports import Row, Transaction
from perdure.schema.ids import JobID, SessionID, ToolCallID
from perdure.schema.session.job import JobState

_COLUMNS: Final = (
    "id, session_id, call_id, command, directory, path, pid, identity, process, state, ending,"
    " quiet, exit_code, seen, time_started, time_ended, deadline"
)


async def insert(tx: Transaction, job: Job) -> None:
    await tx.execute(
        "INSERT INTO job (id, session_id, call_id, command, directory, path, pid, identity,"
        " process, state, time_started, deadline) VALUES (:id, :session_id, :call_id, :command,"
        " :directory, :path, :pid, :identity, :process, :state, :time_started, :deadline)",
        {
            "id": job.id,
            "session_id": job.session_id,
            "call_id": job.call_id,
            "command": job.command,
            "directory": job.directory,
            "path": job.process.output,
            "pid": job.process.pid,
            "identity": job.process.identity,
            "process": job.owner,
            "state": job.state,
            "time_started": job.time_started,
            "deadline": job.deadline,
        },
    )


async def get(tx: Transaction, job_id: JobID) -> Job | None:
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM job WHERE id = :id", {"id": job_id})
    return _job(rows[0]) if rows else None


async def list_for_session(tx: Transaction, session_id: SessionID, *, limit: int) -> list[Job]:
    """Jobs of a Session, newest first."""
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM job WHERE session_id = :id"
        " ORDER BY time_started DESC, id DESC LIMIT :limit",
        {"id": session_id, "limit": limit},
    )
    return [_job(row) for row in rows]


async def list_running(tx: Transaction) -> list[Job]:
    """Every job that is not settled, in all processes."""
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM job WHERE state = 'running' ORDER BY id")
    return [_job(row) for row in rows]


async def count_running(tx: Transaction, session_id: SessionID) -> tuple[int, int]:
    """Count running jobs: of the Session, and of all Sessions."""
    rows = await tx.fetch(
        "SELECT count(*) FILTER (WHERE session_id = :id), count(*) FROM job"
        " WHERE state = 'running'",
        {"id": session_id},
    )
    of_session, of_all = rows[0]
    return int(str(of_session)), int(str(of_all))


async def adopt(tx: Transaction, job: Job, *, owner: str) -> bool:
    """Become the process that watches a job; returns whether no other process did so first."""
    changed = await tx.execute(
        "UPDATE job SET process = :owner"
        " WHERE id = :id AND process = :before AND state = 'running'",
        {"id": job.id, "owner": owner, "before": job.owner},
    )
    return changed > 0


async def set_ending(tx: Transaction, job_id: JobID, ending: Ending, *, quiet: bool) -> None:
    """Record why a job is being ended. The first reason is kept."""
    await tx.execute(
        "UPDATE job SET ending = :ending, quiet = :quiet"
        " WHERE id = :id AND ending IS NULL AND state = 'running'",
        {"id": job_id, "ending": ending, "quiet": quiet},
    )


async def settle(tx: Transaction, job: Job) -> None:
    await tx.execute(
        "UPDATE job SET state = :state, exit_code = :exit_code, time_ended = :time_ended"
        " WHERE id = :id AND state = 'running'",
        {
            "id": job.id,
            "state": job.state,
            "exit_code": job.exit_code,
            "time_ended": job.time_ended,
        },
    )


async def set_output_seen(tx: Transaction, job_id: JobID, *, up_to: int) -> None:
    """Record how much of the output the model has been shown."""
    await tx.execute("UPDATE job SET seen = :seen WHERE id = :id", {"id": job_id, "seen": up_to})


def _job(row: Row) -> Job:
    job_id, session_id, call_id, command, directory, path, pid, identity, owner, *rest = row
    state, ending, quiet, exit_code, seen, time_started, time_ended, deadline = rest
    process = DetachedProcess(pid=_number(pid), identity=str(identity), output=str(path))
    return Job(
        id=JobID(str(job_id)),
        session_id=SessionID(str(session_id)),
        call_id=ToolCallID(str(call_id)),
        command=str(command),
        directory=str(directory),
        process=process,
        owner=str(owner),
        time_started=_number(time_started),
        deadline=_number(deadline),
        state=cast("JobState", state),
        exit_code=None if exit_code is None else _number(exit_code),
        time_ended=None if time_ended is None else _number(time_ended),
        ending=cast("Ending | None", ending),
        quiet=bool(quiet),
        seen=_number(seen),
    )


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
