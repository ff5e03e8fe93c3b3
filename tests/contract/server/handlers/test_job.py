"""Background jobs over HTTP: listed, looked at, ended by the user."""

from collections.abc import AsyncGenerator

import pytest

from perdure.host.process.detached import LocalDetached
from perdure.schema.codec import JsonObject
from perdure.store.tables import job_table
from tests.contract.server.served_runtime import SESSION, Backend
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text

JOBS = f"/api/session/{SESSION}/job"
COMMAND = "echo listening; exec sleep 600"


@pytest.fixture
async def job(backend: Backend, port: int) -> AsyncGenerator[JsonObject]:
    """A job that runs; it is ended after the test."""
    running = Call("bash", {"command": COMMAND, "background": True}, "call_1")
    backend.provider.then(calls(running), text("it runs"))
    await call(port, "POST", f"/api/session/{SESSION}/prompt", b'{"prompt":{"text":"start it"}}')
    await call(port, "POST", f"/api/session/{SESSION}/wait")
    (found,) = (await call(port, "GET", JOBS)).json()["data"]
    yield found
    for left in await backend.runtime.store.database.read(job_table.list_running):
        await LocalDetached().kill(left.process)


async def test_jobs_are_listed_and_looked_at(port: int, backend: Backend, job: JsonObject) -> None:
    assert job == {
        "id": job["id"],
        "sessionID": SESSION,
        "callID": "call_1",
        "command": COMMAND,
        "directory": backend.here,
        "state": "running",
        "path": job["path"],
        "time": {"started": job["time"]["started"], "deadline": job["time"]["deadline"]},
    }
    shown = await call(port, "GET", f"{JOBS}/{job['id']}")
    data = shown.json()["data"]
    assert (shown.status, data["job"], data["truncated"]) == (200, job, False)
    assert data["output"] == "listening\n"[: data["bytes"]]


async def test_the_session_is_told_of_a_job_that_the_user_ends(
    port: int, backend: Backend, job: JsonObject
) -> None:
    asked = len(backend.provider.requests)
    ended = await call(port, "POST", f"{JOBS}/{job['id']}/cancel")
    data = ended.json()["data"]
    assert (ended.status, data["state"], data["id"]) == (200, "cancelled", job["id"])
    assert data["exitCode"] != 0
    told = await backend.provider.arrived(asked + 1)
    assert str(job["id"]) in told.texts("user")[-1]


@pytest.mark.parametrize(
    ("method", "path", "status", "tag"),
    [
        ("GET", f"{JOBS}/job_2", 404, "JobNotFoundError"),
        ("POST", f"{JOBS}/job_2/cancel", 404, "JobNotFoundError"),
        ("GET", f"{JOBS}/other", 400, "InvalidRequestError"),
        ("GET", f"{JOBS}/job_%00", 400, "InvalidRequestError"),
        ("GET", "/api/session/ses_none/job", 404, "SessionNotFoundError"),
        ("POST", "/api/session/ses_none/job/{job}/cancel", 404, "SessionNotFoundError"),
        ("GET", "/api/session/ses_two/job/{job}", 404, "JobNotFoundError"),
        ("POST", "/api/session/ses_two/job/{job}/cancel", 404, "JobNotFoundError"),
    ],
)
async def test_what_is_not_there_cannot_be_looked_at(
    port: int, job: JsonObject, method: str, path: str, status: int, tag: str
) -> None:
    refused = await call(port, method, path.replace("{job}", str(job["id"])))
    assert (refused.status, refused.json()["_tag"]) == (status, tag)
    (same,) = (await call(port, "GET", JOBS)).json()["data"]
    assert same["state"] == "running"
