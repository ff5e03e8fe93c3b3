"""`python -m tests.crash.scenarios.jobs [N]`: crash at every N-th point of background jobs.

A process starts a job and waits for its end, starts another and cancels it, and is killed. The next
process takes over what is left. The jobs are real processes, which go on after the kill. It prints
what is wrong and exits with 1 if anything is. It is a command, because a process that forks must
have no threads.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from msgspec import UNSET

from perdure.core.session import job as rules
from perdure.ports.jobs import JobStart
from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import SessionID, ToolCallID
from perdure.schema.session.job import JobInfo
from tests.crash.scenarios import scenario
from tests.crash.scenarios.scenario import Scenario
from tests.fixtures import LOCATION, Facts
from tests.support import database_check

SESSION: Final = SessionID("ses_jobs")
RUNS: Final = "echo ran >>effects; exit 3"
BEGUN: Final = "begun"
STAYS: Final = f"echo {BEGUN} >{BEGUN}; exec sleep 60"
WAIT_SECONDS: Final = 20


def main() -> int:
    each = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    return scenario.sweep(
        Scenario(_prepare, _work, _take_over_and_check, has_processes=True), each=each
    )


async def _prepare(runtime: Runtime, _: Path) -> None:
    await runtime.store.append(SESSION, [Facts(SESSION).created()], location=LOCATION)


async def _work(runtime: Runtime, site: Path) -> None:
    first = await _start(runtime, site, RUNS)
    await runtime.jobs.look(SESSION, first.id, wait_seconds=WAIT_SECONDS)
    # Told to end before its command has begun, a job may have to be killed: that takes seconds.
    begun = site / BEGUN
    os.mkfifo(begun)
    second = await _start(runtime, site, STAYS)
    await asyncio.to_thread(begun.read_text)
    await runtime.jobs.cancel(SESSION, second.id, quiet=True)


async def _start(runtime: Runtime, site: Path, command: str) -> JobInfo:
    return await runtime.jobs.start(
        JobStart(
            session_id=SESSION,
            call_id=ToolCallID("call_1"),
            shell="/bin/sh",
            command=command,
            directory=str(site),
            variables=None,
            seconds_max=60,
        )
    )


async def _take_over_and_check(runtime: Runtime, site: Path) -> None:
    await runtime.jobs.adopt({SESSION})
    for job in await runtime.jobs.list(SESSION):
        if job.command == STAYS:
            await runtime.jobs.cancel(SESSION, job.id, quiet=True)
        else:
            await runtime.jobs.look(SESSION, job.id, wait_seconds=WAIT_SECONDS)
    found = {job.command: job for job in await runtime.jobs.list(SESSION)}
    effects = site / "effects"
    ran = effects.read_text().count("ran") if effects.exists() else 0
    told = _told(site)
    if (first := found.get(RUNS)) is None:
        assert ran == 0, "a command ran without a record"
    else:
        assert (first.state, first.exit_code, ran) in _ENDS, (first, ran)
        assert told.count(rules.notice_id(first.id)) == 1, "its end was not told once"
    if (second := found.get(STAYS)) is not None:
        assert second.state in {"cancelled", "lost"}, second
        assert told.count(rules.notice_id(second.id)) == (second.state == "lost")
    assert len(told) == len(set(told)), "something was told twice"
    await database_check.check(site / "perdure.db")


_ENDS: Final = (("exited", 3, 1), ("lost", UNSET, 0))
"""How the first job may have ended: as it does, or before it was told to begin."""


def _told(site: Path) -> list[str]:
    rows = database_check.dump(site / "perdure.db")
    waiting = [str(row[0]) for row in rows["session_notice"]]
    return waiting + [str(row[0]) for row in rows["session_message"] if "synthetic" in row]


if __name__ == "__main__":
    sys.exit(main())
