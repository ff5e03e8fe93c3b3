"""A background job: what a look at the world means, and what is said about it."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import job as rules
from perdure.core.session.job import DetachedProcess, Ending, Job, JobLimitError, Sighting
from perdure.schema import codec
from perdure.schema.ids import JobID, SessionID, ToolCallID
from perdure.schema.session.job import JobState

JOB = Job(
    id=JobID("job_1"),
    session_id=SessionID("ses_1"),
    call_id=ToolCallID("call_1"),
    command="make test",
    directory="/project",
    process=DetachedProcess(pid=7, identity="boot:1", output="/data/tool_1"),
    owner="prc_1",
    time_started=1_000,
    deadline=2_000,
)
FULL = limits.JOB_OUTPUT_BYTES_MAX


def seen(*, alive: bool = True, code: int | None = None, size: int = 0) -> Sighting:
    return Sighting(alive=alive, exit_code=code, output_bytes=size)


@pytest.mark.parametrize(
    ("decided", "size", "now", "reason"),
    [
        (None, 0, 1_000, None),
        (None, FULL, 1_999, None),
        (None, FULL + 1, 1_999, "overflowed"),
        (None, 0, 2_000, "timed_out"),
        (None, FULL + 1, 2_000, "overflowed"),
        # Whoever decided first: a process that died meanwhile left the decision behind.
        ("cancelled", FULL + 1, 9_000, "cancelled"),
        ("timed_out", 0, 1_000, "timed_out"),
    ],
)
def test_a_job_is_ended_when_it_must_be(
    decided: Ending | None, size: int, now: int, reason: Ending | None
) -> None:
    assert rules.ending_due(replace(JOB, ending=decided), seen(size=size), now=now) == reason


@pytest.mark.parametrize(
    ("decided", "code", "state"),
    [
        (None, 0, "exited"),
        (None, 137, "exited"),
        (None, None, "lost"),
        ("cancelled", 143, "cancelled"),
        ("cancelled", None, "cancelled"),
        ("timed_out", 0, "timed_out"),
        ("overflowed", None, "overflowed"),
    ],
)
def test_a_job_that_is_gone_is_settled(
    decided: Ending | None, code: int | None, state: JobState
) -> None:
    settled = rules.settle(replace(JOB, ending=decided), seen(alive=False, code=code), now=5_000)
    assert (settled.state, settled.exit_code, settled.time_ended) == (state, code, 5_000)


@pytest.mark.parametrize(
    ("of_session", "of_all", "refused"),
    [
        (0, 0, None),
        (limits.JOBS_PER_SESSION_MAX - 1, limits.JOBS_MAX - 1, None),
        (limits.JOBS_PER_SESSION_MAX, 8, "of this session"),
        (0, limits.JOBS_MAX, "on this machine"),
    ],
)
def test_only_so_many_run_at_a_time(of_session: int, of_all: int, refused: str | None) -> None:
    if refused is None:
        rules.check_limits(of_session=of_session, of_all=of_all)
        return
    with pytest.raises(JobLimitError, match=refused):
        rules.check_limits(of_session=of_session, of_all=of_all)


def test_the_end_of_a_job_has_one_message_id() -> None:
    assert rules.notice_id(JOB.id) == rules.notice_id(JobID("job_1"))
    assert rules.notice_id(JOB.id) != rules.notice_id(JobID("job_2"))
    assert rules.notice_id(JOB.id).startswith("msg_")


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ("running", None, "is running."),
        ("exited", 3, "has exited with code 3."),
        ("cancelled", 143, "was cancelled."),
        ("timed_out", None, "ran out of time"),
        ("overflowed", None, f"more than {FULL} bytes"),
        ("lost", None, "how it ended is not known"),
    ],
)
def test_every_state_has_its_words(state: JobState, code: int | None, words: str) -> None:
    assert words in rules.describe_state(replace(JOB, state=state, exit_code=code).info)


def test_a_notice_names_the_command_its_end_and_its_file() -> None:
    done = replace(JOB, state="exited", exit_code=0)
    assert rules.notice(done, "\n2 passed\n\n") == (
        "Background job job_1 has exited with code 0.\nCommand: make test\n"
        "Its output ended with:\n2 passed\nAll of its output is in /data/tool_1"
    )
    assert "It printed nothing." in rules.notice(done, "\n")


def test_a_notice_is_short_however_long_the_command_is() -> None:
    long = replace(JOB, state="lost", command="x" * 1_000_000)
    assert len(rules.notice(long, "")) < 2 * limits.JOB_COMMAND_SHOWN_CHARS_MAX


def test_clients_see_no_process_numbers() -> None:
    assert JOB.info.exit_code is UNSET
    shown = codec.decode_any(codec.encode(JOB.info))
    assert sorted(shown) == [
        *("callID", "command", "directory", "id", "path", "sessionID", "state", "time"),
    ]
    assert shown["time"] == {"started": 1_000, "deadline": 2_000}
