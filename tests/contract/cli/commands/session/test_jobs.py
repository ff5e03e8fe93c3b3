"""`perdure jobs`: what runs in the background of a Session, seen and ended without a server."""

import asyncio
import json
from functools import partial

from perdure.host import environment
from perdure.host.process.detached import LocalDetached
from perdure.ports.jobs import JobStart
from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.schema.ids import SessionID, ToolCallID
from perdure.store.tables import job_table
from tests.contract.cli.command import Installation
from tests.fixtures import opened


async def left_running(installation: Installation) -> tuple[SessionID, str]:
    """A job whose server is gone: its Session, and its id."""
    settings = RuntimeSettings(
        environment=environment.from_variables(installation.variables),
        data_dir=str(installation.data_dir),
        default_directory=str(installation.project),
    )
    async with open_runtime(settings) as runtime:
        session = await runtime.sessions.create()
        job = await runtime.jobs.start(
            JobStart(
                session_id=session.id,
                call_id=ToolCallID("call_1"),
                shell="/bin/sh",
                command="printf '\033[31m'; sleep 60",
                directory=str(installation.project),
                variables=None,
                seconds_max=60,
            )
        )
    return session.id, job.id


async def test_jobs_are_listed_and_ended(installation: Installation) -> None:
    session, job = await left_running(installation)
    listed = await asyncio.to_thread(installation.perdure, "jobs", session)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.startswith(f"{job}  ")
    assert "  running  printf" in listed.stdout
    assert "\033" not in listed.stdout
    ended = await asyncio.to_thread(
        partial(installation.perdure, "jobs", session, "--cancel", job, "--format", "json")
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["state"] == "cancelled"
    async with opened(installation.data_dir / "perdure.db") as database:
        assert await database.read(job_table.list_running) == []
        waiting = await database.read(lambda tx: tx.fetch("SELECT text FROM session_notice"))
    # Nothing ran in the command: who comes next tells it.
    assert [f"{job} was cancelled." in str(text) for (text,) in waiting] == [True]


async def test_a_job_that_is_not_there_is_said(installation: Installation) -> None:
    session, job = await left_running(installation)
    try:
        missed = await asyncio.to_thread(
            partial(installation.perdure, "jobs", session, "--cancel", "job_other")
        )
        assert missed.returncode == 1
        assert "Background job not found: job_other" in missed.stderr
        nobody = await asyncio.to_thread(partial(installation.perdure, "jobs", "ses_nobody"))
        assert nobody.returncode == 1
    finally:
        async with opened(installation.data_dir / "perdure.db") as database:
            (left,) = await database.read(job_table.list_running)
        assert left.id == job
        await LocalDetached().kill(left.process)
