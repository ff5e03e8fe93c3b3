"""Text search, version control, projects and the diff of a Session: shapes and refusals."""

import subprocess
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend, open_backend
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text

DENIED = {"permissions": [{"action": "read", "resource": "secret.txt", "effect": "deny"}]}


def make_repository(directory: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=directory, check=True)


async def search(port: int, query: str) -> JsonObject:
    answer = await call(port, "GET", f"/api/fs/search?{query}")
    assert answer.status == 200
    return answer.json()["data"]


async def test_lines_are_found_by_a_regular_expression(backend: Backend, port: int) -> None:
    (backend.folders.project / "a.py").write_text("x = 1\ny = 22\n")
    (backend.folders.project / "b.txt").write_text("z = 333\n")
    found = await search(port, r"pattern=%3D%20%5Cd%2B&include=*.py")
    assert found == {
        "matches": [
            {
                "path": "a.py",
                "line": 1,
                "offset": 0,
                "text": "x = 1",
                "submatches": [{"text": "= 1", "start": 2, "end": 5}],
            },
            {
                "path": "a.py",
                "line": 2,
                "offset": 6,
                "text": "y = 22",
                "submatches": [{"text": "= 22", "start": 2, "end": 6}],
            },
        ],
        "truncated": False,
    }
    assert (await search(port, r"pattern=%3D&limit=1"))["truncated"] is True


@pytest.mark.parametrize(
    "query",
    [
        "",
        "pattern=",
        "pattern=(",
        "pattern=x&limit=0",
        "pattern=x&include=/etc/*",
        "pattern=x&include=../*",
        "pattern=%00",
        "pattern=" + "x" * 20_000,
    ],
)
async def test_a_search_that_cannot_be_made_is_refused(query: str, port: int) -> None:
    answer = await call(port, "GET", f"/api/fs/search?{query}")
    assert (answer.status, answer.json()["_tag"]) == (400, "InvalidRequestError")


async def test_content_that_a_rule_denies_is_shown_by_no_route(tmp_path: Path) -> None:
    async with open_backend(tmp_path, **DENIED) as backend, backend.port() as port:
        project = backend.folders.project
        (project / "secret.txt").write_text("hidden words\n")
        (project / "open.txt").write_text("hidden words\n")
        (project / "alias.txt").symlink_to("secret.txt")
        make_repository(project)
        for name in ("secret.txt", "./secret.txt", "alias.txt"):
            answer = await call(port, "GET", f"/api/fs/read/{name}")
            assert (answer.status, answer.json()["_tag"]) == (403, "ForbiddenError")
        missing = await call(port, "GET", "/api/fs/read/missing.txt")
        assert missing.status == 404
        found = await search(port, "pattern=hidden")
        assert {each["path"] for each in found["matches"]} == {"open.txt"}
        diff = (await call(port, "GET", "/api/vcs/diff")).json()["data"]
        patches = {each["path"]: each["patch"] for each in diff}
        assert patches["secret.txt"] == ""
        assert "hidden words" in patches["open.txt"]


async def prompt(port: int, message_id: str) -> None:
    body = codec.encode({"id": message_id, "prompt": {"text": "do it"}})
    assert (await call(port, "POST", f"/api/session/{SESSION}/prompt", body)).status == 200
    assert (await call(port, "POST", f"/api/session/{SESSION}/wait")).status == 204


async def get_diff(port: int, query: str = "") -> dict[str, JsonObject]:
    answer = await call(port, "GET", f"/api/session/{SESSION}/diff{query}")
    assert answer.status == 200
    return {each["path"]: each for each in answer.json()["data"]}


async def test_the_diff_of_a_session_has_every_file_that_it_changed(
    backend: Backend, port: int
) -> None:
    (backend.folders.project / "old.txt").write_text("one\n")
    write = Call("write", {"path": "new.txt", "content": "1\n"})
    backend.provider.then(calls(write), text("done"))
    await prompt(port, "msg_1")
    backend.provider.then(
        calls(Call("bash", {"command": "echo 2 >> new.txt; echo two >> old.txt"})), text("done")
    )
    await prompt(port, "msg_2")
    # Another program's change is not the Session's.
    (backend.folders.project / "new.txt").write_text("overwritten\n")
    found = await get_diff(port)
    assert found["new.txt"]["status"] == "added"
    assert found["new.txt"]["patch"].endswith("@@ -0,0 +1,2 @@\n+1\n+2\n")
    assert (found["old.txt"]["additions"], found["old.txt"]["deletions"]) == (1, 0)
    first = await get_diff(port, "?last=msg_1")
    assert first == {}
    since = await get_diff(port, "?first=msg_2")
    assert since["new.txt"]["patch"].endswith(" 1\n+2\n")
    assert since["new.txt"]["status"] == "modified"


async def test_a_staged_revert_is_left_out_of_the_diff(backend: Backend, port: int) -> None:
    backend.provider.then(calls(Call("write", {"path": "new.txt", "content": "1\n"})), text("done"))
    await prompt(port, "msg_1")
    assert list(await get_diff(port)) == ["new.txt"]
    body = b'{"messageID":"msg_1"}'
    await call(port, "POST", f"/api/session/{SESSION}/revert/stage", body)
    assert await get_diff(port) == {}
    await call(port, "POST", f"/api/session/{SESSION}/revert/clear")
    assert list(await get_diff(port)) == ["new.txt"]


async def test_a_range_that_names_no_message_is_refused(port: int) -> None:
    path = f"/api/session/{SESSION}/diff"
    assert (await call(port, "GET", f"{path}?first=msg_none")).status == 404
    assert (await call(port, "GET", f"{path}?last=none")).status == 400


async def test_projects_are_those_of_the_sessions_and_the_current_one(
    backend: Backend, port: int, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    (repository / "sub").mkdir(parents=True)
    make_repository(repository)
    (repository / ".git" / "opencode").write_text("project-of-the-test")
    for place in (repository, repository / "sub"):
        body = codec.encode({"location": {"directory": str(place)}})
        assert (await call(port, "POST", "/api/session", body)).status == 200
    listed = (await call(port, "GET", "/api/project")).json()["data"]
    assert [each["id"] for each in listed] == ["global", "project-of-the-test"]
    assert listed[1]["directory"] == str(repository)
    assert listed[1]["directories"] == [str(repository)]
    assert listed[1]["vcs"] == "git"
    assert listed[1]["time"]["updated"] >= listed[1]["time"]["created"] > 0
    query = f"?location[directory]={repository / 'sub'}"
    current = (await call(port, "GET", f"/api/project/current{query}")).json()["data"]
    assert current == listed[1]
    vcs = (await call(port, "GET", f"/api/vcs{query}")).json()["data"]
    assert vcs == {"branch": "main"}


async def test_the_default_model_is_the_configured_one(port: int) -> None:
    answer = (await call(port, "GET", "/api/model/default")).json()["data"]
    assert answer == {"model": {"providerID": "fake", "id": "fake-model"}}
