"""Background jobs over HTTP: listed, looked at, ended by a person."""

from collections.abc import AsyncGenerator

import pytest

from perdure.schema.ids import SessionID
from tests.contract.server.fake_runtime import SESSION, Stage, call, listening
from tests.contract.server.staged_jobs import JOB

JOBS = f"/api/session/{SESSION}/job"
WHOLE = {
    "id": JOB,
    "sessionID": SESSION,
    "callID": "call_1",
    "command": "serve",
    "directory": "/work/here",
    "state": "running",
    "path": "/data/tool-output/tool_1",
    "time": {"started": 1, "deadline": 9},
}


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
async def port(stage: Stage) -> AsyncGenerator[int]:
    async with listening(stage.app()) as (_, number):
        yield number


async def test_jobs_are_listed_and_looked_at(port: int) -> None:
    listed = await call(port, "GET", JOBS)
    assert (listed.status, listed.json()) == (200, {"data": [WHOLE]})
    shown = await call(port, "GET", f"{JOBS}/{JOB}")
    whole = {"job": WHOLE, "output": "listening\n", "bytes": 10, "truncated": False}
    assert (shown.status, shown.json()) == (200, {"data": whole})


async def test_whoever_ends_a_job_over_http_is_a_person_and_the_session_is_told(
    port: int, stage: Stage
) -> None:
    ended = await call(port, "POST", f"{JOBS}/{JOB}/cancel")
    assert ended.status == 200
    assert (ended.json()["data"]["state"], ended.json()["data"]["exitCode"]) == ("cancelled", 143)
    assert stage.jobs.cancelled == [(SessionID(SESSION), JOB, False)]


@pytest.mark.parametrize(
    ("method", "path", "status", "tag"),
    [
        ("GET", f"{JOBS}/job_2", 404, "JobNotFoundError"),
        ("POST", f"{JOBS}/job_2/cancel", 404, "JobNotFoundError"),
        ("GET", f"{JOBS}/other", 400, "InvalidRequestError"),
        ("GET", f"{JOBS}/job_%00", 400, "InvalidRequestError"),
        ("GET", "/api/session/ses_none/job", 404, "SessionNotFoundError"),
        ("POST", f"/api/session/ses_none/job/{JOB}/cancel", 404, "SessionNotFoundError"),
    ],
)
async def test_what_is_not_there_cannot_be_looked_at(
    port: int, stage: Stage, method: str, path: str, status: int, tag: str
) -> None:
    refused = await call(port, method, path)
    assert (refused.status, refused.json()["_tag"]) == (status, tag)
    assert stage.jobs.cancelled == []
