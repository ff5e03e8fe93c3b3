"""Servers on one data directory that are killed or stopped: nothing lost, nothing doubled.

`PERDURE_PROCESSES` and `PERDURE_SECONDS` make it larger and longer. With `PERDURE_PAUSE_SECONDS=0`
clients send without a pause.
"""

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perdure.host.process import orphans, table
from perdure.schema import codec
from perdure.schema.ids import MessageID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.figures import Figure
from tests.harness.checkers.ledger import Ledger
from tests.many_processes import swarm
from tests.many_processes.swarm import Model, Swarm
from tests.requirements import requirement
from tests.support import database_check
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import scripted_provider

PROCESSES: Final = int(os.environ.get("PERDURE_PROCESSES", "8"))
SECONDS: Final = float(os.environ.get("PERDURE_SECONDS", "20"))
PAUSE_SECONDS: Final = float(os.environ.get("PERDURE_PAUSE_SECONDS", "1.6"))
REST_SECONDS_MAX: Final = 60 + 2 * SECONDS
"""Prompts are said faster than they are answered."""
SESSIONS: Final = 12
STOPPING: Final = 3
STOP_SECONDS: Final = float(os.environ.get("PERDURE_STOP_SECONDS", "15"))
KILLS_LEAST: Final = int(SECONDS / 4)


@requirement("S69", "S70", "S74", "S147", "S189")
@pytest.mark.timeout(SECONDS + REST_SECONDS_MAX + 120)
async def test_nothing_is_lost_or_doubled_while_processes_come_and_are_killed(
    tmp_path: Path, figure: Figure
) -> None:
    async with scripted_provider() as provider:
        model = Model()
        provider.otherwise, provider.keeps_requests = model.answer, False
        folders = make_folders(tmp_path, provider)
        ask_before_sending_again(folders)
        crowd = Swarm(folders, Random(7), PROCESSES, PAUSE_SECONDS)
        try:
            await crowd.start(sessions=SESSIONS)
            await crowd.live(SECONDS)
            await crowd.rest(REST_SECONDS_MAX)
        finally:
            await crowd.stop()
        check_callers(crowd)
        check_prompts(crowd, logged(folders))
        check_runs(folders)
        check_effects(folders, model)
        check_children(folders)
    await database_check.check(folders.database)
    figure("processes on one database", PROCESSES)
    figure("processes killed", crowd.kills)
    figure("prompts to many processes", len(crowd.receipts))
    figure("seconds of many processes", round(SECONDS))


@requirement("S69", "S74", "S147", "S189")
@pytest.mark.timeout(STOP_SECONDS + REST_SECONDS_MAX + 120)
async def test_a_process_that_is_stopped_at_any_moment_blocks_no_other(
    tmp_path: Path, figure: Figure
) -> None:
    async with scripted_provider() as provider:
        model = Model()
        provider.otherwise, provider.keeps_requests = model.answer, False
        folders = make_folders(tmp_path, provider)
        ask_before_sending_again(folders)
        crowd = Swarm(folders, Random(11), STOPPING, PAUSE_SECONDS)
        try:
            await crowd.start(sessions=SESSIONS)
            await crowd.live(STOP_SECONDS, stops=True)
            await crowd.rest(REST_SECONDS_MAX)
        finally:
            await crowd.stop()
        assert crowd.trouble == []
        # None had to be asked again because it gave no answer in the time it has.
        assert crowd.unanswered == 0
        assert crowd.statuses[200] >= len(crowd.receipts)
        check_prompts(crowd, logged(folders))
        check_runs(folders)
        check_effects(folders, model)
        check_children(folders)
    await database_check.check(folders.database)
    figure("stops of processes", crowd.stops)
    figure("answers 503 while a process was stopped", crowd.statuses[503])


def ask_before_sending_again(folders: ProjectFolders) -> None:
    """As with a provider that costs money: a request that may have been sent waits for a person."""
    path = Path(folders.variables["HOME"]) / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(codec.encode({"experimental": {"recovery": "ask"}}))


def check_callers(crowd: Swarm) -> None:
    """Every client that reached a living process got its answer."""
    assert crowd.kills >= KILLS_LEAST
    assert crowd.trouble == []
    assert set(crowd.statuses) == {200}
    assert len(crowd.receipts) > 20 * PROCESSES
    for server in crowd.logs:
        assert "Traceback" not in server.log, server.log
        assert "locked" not in server.log, server.log


def check_prompts(crowd: Swarm, log: list[tuple[str, int, SessionEvent]]) -> None:
    """Everything that was acknowledged is in the log once, where the receipt says, and was run."""
    admitted: dict[str, tuple[str, int]] = {}
    promoted: Counter[str] = Counter()
    for session, seq, event in log:
        if isinstance(event, events.PromptAdmitted):
            assert event.message_id not in admitted, f"{event.message_id} was admitted twice"
            admitted[event.message_id] = session, seq
        if isinstance(event, events.PromptPromoted):
            promoted[event.message_id] += 1
    assert admitted == {
        key: (receipt["sessionID"], receipt["admittedSeq"])
        for key, receipt in crowd.receipts.items()
    }
    assert promoted == Counter(dict.fromkeys(admitted, 1))


def check_runs(folders: ProjectFolders) -> None:
    """One runner at a time: a step begins when the one before it is settled, and stays settled."""
    for steps in steps_of(logged(folders)).values():
        for index, (began, settled, last) in enumerate(steps):
            assert settled is not None, "a step was never settled"
            assert last == settled, "a step went on after its end"
            if index:
                before = steps[index - 1][1]
                assert before is not None
                assert began > before, "two steps ran at once"


def check_effects(folders: ProjectFolders, model: Model) -> None:
    """No effect twice, and no prompt asked twice of the model."""
    lines = (folders.project / swarm.EFFECTS).read_text(encoding="utf-8").split()
    assert lines
    assert [line for line, count in Counter(lines).items() if count > 1] == []
    assert [prompt for prompt, count in model.asked.items() if count > 1] == []


def check_children(folders: ProjectFolders) -> None:
    """Nothing runs that a server started, stopped or killed."""
    left = [row for row in table.list_rows() if _works_in(row.pid, folders.project)]
    assert [row for row in left if table.read_variable(row.pid, orphans.VARIABLE)] == []
    assert orphans.list_processes(str(folders.data / "processes")) == frozenset()


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == directory
    except OSError:
        return False


def logged(folders: ProjectFolders) -> list[tuple[str, int, SessionEvent]]:
    ledger = Ledger(str(folders.database))
    try:
        return [(item.session_id, item.seq, item.event) for item in ledger.new_events()]
    finally:
        ledger.close()


Step = tuple[int, int | None, int]


def steps_of(log: list[tuple[str, int, SessionEvent]]) -> dict[str, list[Step]]:
    """Of each Session the steps in order: where they began, were settled, and were last named."""
    found: dict[tuple[str, MessageID], Step] = {}
    for session, seq, event in log:
        if isinstance(event, events.StepFact):
            key = session, event.assistant_message_id
            began, settled, _ = found.get(key, (seq, None, seq))
            over = isinstance(event, events.StepEnded | events.StepFailed)
            found[key] = began, seq if over else settled, seq
    by_session: dict[str, list[Step]] = {}
    for (session, _), step in found.items():
        by_session.setdefault(session, []).append(step)
    return by_session
