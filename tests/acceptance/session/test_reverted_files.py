"""Going back with files: what the Session did to them is undone, and nothing else is touched."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from perdure.schema.codec import JsonObject
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

PATCH = """\
*** Begin Patch
*** Add File: added.txt
+new
*** Update File: kept.txt
@@
-old
+patched
*** Delete File: gone.txt
*** End Patch
"""


def write(path: str, content: str) -> Call:
    return Call("write", {"path": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit", {"path": path, "oldString": old, "newString": new})


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


async def worked(api: Api, provider: ScriptedProvider, *made: Call) -> tuple[str, str]:
    """A Session whose one turn makes these calls, and the prompt that asked for them."""
    session = await api.create()
    return session, await work(api, provider, session, *made)


async def work(api: Api, provider: ScriptedProvider, session: str, *made: Call) -> str:
    provider.then(calls(*made), text("done"))
    prompt, step, _ = (await api.ask(session, "work"))[-3:]
    states = [part["state"]["status"] for part in step["content"]]
    assert states == ["completed"] * len(made), step["content"]
    return prompt["id"]


async def revert(api: Api, session: str, verb: str, body: JsonObject | None = None) -> Answer:
    return await api.call("POST", f"/api/session/{session}/revert/{verb}", body)


async def stage(api: Api, session: str, message: str, **more: bool) -> JsonObject:
    answer = await revert(api, session, "stage", {"messageID": message, **more})
    assert answer.status == 200, answer.body
    return answer.json["data"]


async def end(api: Api, session: str, verb: str) -> None:
    answer = await revert(api, session, verb)
    assert (answer.status, answer.body) == (204, b"")


def repository(directory: Path) -> None:
    for arguments in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *arguments], cwd=directory, check=True)


def tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below, with its permissions and content; links by where they point."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = (0, os.readlink(path).encode())
        elif path.is_file():
            found[name] = (path.stat().st_mode & 0o777, path.read_bytes())
    return found


async def test_what_every_tool_did_is_put_back_and_returns_when_the_revert_is_cleared(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    for name in ("kept.txt", "gone.txt", "edited.txt", "moved.txt"):
        (folders.project / name).write_text("old\n")
    before = tree(folders.project)
    session, prompt = await worked(
        api,
        provider,
        Call("read", {"path": "edited.txt"}),
        Call("apply_patch", {"patchText": PATCH}),
        write("deep/er/written.txt", "written\n"),
    )
    await work(api, provider, session, edit("edited.txt", "old", "edited"))
    await work(
        api, provider, session, bash("mkdir made && mv moved.txt made/ && chmod 755 kept.txt")
    )
    after = tree(folders.project)
    assert after.keys() ^ before.keys() == {
        *("added.txt", "gone.txt", "deep/er/written.txt", "moved.txt", "made/moved.txt")
    }

    staged = await stage(api, session, prompt)
    assert tree(folders.project) == before
    shown = {
        file["path"]: (file["status"], file["additions"], file["deletions"])
        for file in staged["files"]
    }
    assert shown == {
        "added.txt": ("deleted", 0, 1),
        "deep/er/written.txt": ("deleted", 0, 1),
        "edited.txt": ("modified", 1, 1),
        "gone.txt": ("added", 1, 0),
        "kept.txt": ("modified", 1, 1),
        "made/moved.txt": ("deleted", 0, 1),
        "moved.txt": ("added", 1, 0),
    }
    assert staged["diff"] == "\n".join(file["patch"].strip() for file in staged["files"])
    assert "+old" in staged["diff"]
    assert "conflicts" not in staged
    assert (await api.session(session))["revert"] == staged

    await end(api, session, "clear")
    assert tree(folders.project) == after
    await stage(api, session, prompt)
    await end(api, session, "commit")
    assert tree(folders.project) == before


async def test_what_a_person_changed_since_stays_and_is_shown_as_a_conflict(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session, prompt = await worked(
        api, provider, write("theirs.txt", "session\n"), write("ours.txt", "session\n")
    )
    (folders.project / "theirs.txt").write_text("session\nand a person\n")
    staged = await stage(api, session, prompt)
    assert staged["conflicts"] == [{"path": "theirs.txt", "reason": "it has been changed since"}]
    assert [file["path"] for file in staged["files"]] == ["ours.txt"]
    assert (folders.project / "theirs.txt").read_text() == "session\nand a person\n"
    assert not (folders.project / "ours.txt").exists()
    # What is written while the revert is staged is not taken away either.
    (folders.project / "ours.txt").write_text("mine\n")
    await end(api, session, "clear")
    assert (folders.project / "ours.txt").read_text() == "mine\n"


async def test_a_change_between_two_of_the_session_is_not_undone_with_them(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session, prompt = await worked(api, provider, write("a.txt", "one\n"))
    (folders.project / "a.txt").write_text("one\nperson\n")
    await work(api, provider, session, bash("echo three >> a.txt"))
    staged = await stage(api, session, prompt)
    assert staged["conflicts"][0]["reason"].startswith("another program changed it between")
    assert (folders.project / "a.txt").read_text() == "one\nperson\nthree\n"


async def test_bytes_links_modes_and_names_come_back_as_they_were(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    project = folders.project
    (project / "raw.bin").write_bytes(bytes(range(256)) * 9)
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o751)
    (project / "link").symlink_to("run.sh")
    (project / "folder" / "below").mkdir(parents=True)
    (project / "folder" / "below" / "grüße 🦉 'x'.txt").write_text("grüße\n")
    (project / "empty").touch()
    before = tree(project)
    command = (
        "printf '\\000\\001' > raw.bin; chmod 600 run.sh; rm link; ln -s raw.bin link;"
        " rm -rf folder; echo full > empty; ln -s nowhere 'new link'; printf '\\377' > 'ü\n.bin'"
    )
    session, prompt = await worked(api, provider, bash(command))
    after = tree(project)
    staged = await stage(api, session, prompt)
    assert tree(project) == before
    shown = {file["path"]: file for file in staged["files"]}
    assert shown.keys() == {
        *("raw.bin", "run.sh", "link", "empty", "new link", "ü\n.bin"),
        "folder/below/grüße 🦉 'x'.txt",
    }
    assert shown["raw.bin"]["patch"] == "Binary files a/raw.bin and b/raw.bin differ\n"
    assert shown["run.sh"]["patch"] == ""
    await end(api, session, "clear")
    assert tree(project) == after


async def test_in_a_repository_ignored_files_and_git_itself_are_left_alone(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    project = folders.project
    (project / ".gitignore").write_text("*.log\n/build/\n")
    (project / "tracked.txt").write_text("old\n")
    repository(project)
    (project / "build").mkdir()
    git = tree(project / ".git")
    command = "echo new > tracked.txt; echo x > trace.log; echo y > build/out; touch added.txt"
    session, prompt = await worked(api, provider, bash(command))
    step = (await api.messages(session))[1]
    assert step["snapshot"]["files"] == ["added.txt", "tracked.txt"]
    await stage(api, session, prompt)
    assert (project / "tracked.txt").read_text() == "old\n"
    assert not (project / "added.txt").exists()
    assert (project / "trace.log").read_text() == "x\n"
    assert (project / "build" / "out").read_text() == "y\n"
    assert tree(project / ".git") == git


async def test_a_file_that_was_only_ignored_before_is_not_taken_for_a_new_one(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / ".gitignore").write_text("secret.env\n")
    (folders.project / "secret.env").write_text("KEY=1\n")
    session, prompt = await worked(api, provider, bash(": > .gitignore"))
    staged = await stage(api, session, prompt)
    assert [file["path"] for file in staged["files"]] == [".gitignore"]
    assert (folders.project / "secret.env").read_text() == "KEY=1\n"


async def test_each_step_tells_which_files_it_changed_and_what_names_them_now(
    api: Api, provider: ScriptedProvider
) -> None:
    session, _ = await worked(api, provider, write("a.txt", "1\n"))
    await work(api, provider, session, bash("true"))
    steps = [m["snapshot"] for m in await api.messages(session) if m["type"] == "assistant"]
    first = steps[0]["end"]
    assert steps[0] == {"end": first, "files": ["a.txt"]}
    # Nothing changes after that, and so does the name.
    assert steps[1:] == [{"start": first, "end": first, "files": []}] * 3
    ended = [e for e in await api.history(session) if e["type"].endswith("step.ended")]
    assert ended[0]["data"]["snapshot"] == first


async def test_with_snapshots_turned_off_files_stay_as_they_are(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path / "off", provider, snapshots=False)
    async with running(folders) as instance:
        session, prompt = await worked(instance.api, provider, write("a.txt", "1\n"), bash("ls"))
        assert await stage(instance.api, session, prompt) == {"messageID": prompt}
        assert "snapshot" not in (await instance.api.messages(session))[1]
    assert (folders.project / "a.txt").exists()
    assert not (folders.data / "snapshots").exists()


async def test_two_sessions_in_one_directory_take_back_only_their_own(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    one, first = await worked(api, provider, write("one.txt", "1\n"), write("both.txt", "1\n"))
    two, second = await worked(api, provider, bash("echo 2 > two.txt; echo 2 >> both.txt"))
    staged = await stage(api, one, first)
    assert [conflict["path"] for conflict in staged["conflicts"]] == ["both.txt"]
    assert (folders.project / "both.txt").read_text() == "1\n2\n"
    assert not (folders.project / "one.txt").exists()
    assert (folders.project / "two.txt").exists()
    assert "conflicts" not in await stage(api, two, second)
    assert (folders.project / "both.txt").read_text() == "1\n"
    # What was a conflict is none any more, now that the other one went back.
    assert "conflicts" not in await stage(api, one, first)
    assert tree(folders.project).keys() == {"opencode.json"}


async def test_staging_again_moves_files_with_the_boundary_and_keeps_the_first_snapshot(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session, first = await worked(api, provider, write("a.txt", "1\n"))
    second = await work(api, provider, session, edit("a.txt", "1", "2"), write("b.txt", "b\n"))
    file = folders.project / "a.txt"
    later = await stage(api, session, second)
    assert (file.read_text(), (folders.project / "b.txt").exists()) == ("1\n", False)
    earlier = await stage(api, session, first)
    assert not file.exists()
    again = await stage(api, session, second)
    assert (file.read_text(), again) == ("1\n", later)
    assert earlier["snapshot"] == later["snapshot"]
    # Without files they are what they were before the first stage.
    await stage(api, session, first, files=False)
    assert (file.read_text(), (folders.project / "b.txt").read_text()) == ("2\n", "b\n")
    await stage(api, session, first)
    await end(api, session, "clear")
    assert file.read_text() == "2\n"


async def test_a_prompt_goes_on_from_the_files_that_were_put_back(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session, first = await worked(api, provider, write("a.txt", "1\n"))
    second = await work(api, provider, session, edit("a.txt", "1", "2"))
    await stage(api, session, second)
    # The file is not what the Session saw last, so it must look again.
    third = await work(api, provider, session, Call("read", {"path": "a.txt"}))
    await work(api, provider, session, edit("a.txt", "1", "3"))
    assert (folders.project / "a.txt").read_text() == "3\n"
    await stage(api, session, third)
    assert (folders.project / "a.txt").read_text() == "1\n"
    await stage(api, session, first)
    assert not (folders.project / "a.txt").exists()


async def test_a_staged_revert_is_cleared_by_another_process_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as before:
        session, prompt = await worked(before.api, provider, write("a.txt", "1\n"), bash("rm -f x"))
        await stage(before.api, session, prompt)
    assert not (folders.project / "a.txt").exists()
    async with running(folders) as after:
        await end(after.api, session, "clear")
    assert (folders.project / "a.txt").read_text() == "1\n"
    await database_check.check(folders.database)


async def test_what_is_too_large_to_keep_is_told_and_left_alone(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    large = folders.project / "large.bin"
    large.write_bytes(b"x" * (2 * 1024 * 1024 + 1))
    session, prompt = await worked(api, provider, bash("echo more >> large.bin; echo s > small"))
    staged = await stage(api, session, prompt)
    assert staged["conflicts"] == [
        {"path": "large.bin", "reason": "what it was before is not kept"}
    ]
    assert not (folders.project / "small").exists()
    assert large.stat().st_size == 2 * 1024 * 1024 + 6


async def test_a_link_put_in_the_way_is_never_written_through(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    session, _ = await worked(api, provider, write("deep/a.txt", "1\n"))
    prompt = await work(api, provider, session, bash("rm -r deep"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("1\n")
    (folders.project / "deep").symlink_to(outside)
    staged = await stage(api, session, prompt)
    assert [conflict["path"] for conflict in staged["conflicts"]] == ["deep/a.txt"]
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("a.txt", "1\n")]


async def test_the_changes_of_a_deleted_session_are_forgotten_with_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as instance:
        session, prompt = await worked(instance.api, provider, write("a.txt", "1\n"))
        await stage(instance.api, session, prompt)
        assert (await instance.api.call("DELETE", f"/api/session/{session}")).status == 204
    with closing(sqlite3.connect(folders.database)) as database:
        for table in ("session_file_change", "session_revert_file"):
            assert database.execute(f"SELECT * FROM {table}").fetchall() == []


async def test_contents_that_only_a_deleted_session_needs_are_removed_with_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    def kept() -> set[str]:
        store = folders.data / "snapshots"
        return {path.read_text() for path in store.glob("??/*")}

    async with running(folders) as instance:
        api = instance.api
        mine, _ = await worked(api, provider, write("a.txt", "mine\n"), write("a.txt", "2\n"))
        await work(api, provider, mine, write("b.txt", "both\n"), write("b.txt", "3\n"))
        other, _ = await worked(api, provider, write("c.txt", "both\n"), write("c.txt", "4\n"))
        assert {"mine\n", "both\n"} <= kept()
        assert (await api.call("DELETE", f"/api/session/{mine}")).status == 204
        assert "mine\n" not in kept()
        assert "both\n" in kept()
        assert (await api.call("DELETE", f"/api/session/{other}")).status == 204
        assert "both\n" not in kept()
        # The same contents are kept again when they are needed again.
        session, _ = await worked(api, provider, write("d.txt", "mine\n"))
        again = await work(api, provider, session, write("d.txt", "5\n"))
        await stage(api, session, again)
        assert (folders.project / "d.txt").read_text() == "mine\n"


async def test_files_are_not_moved_under_a_running_session(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session, prompt = await worked(api, provider, write("a.txt", "1\n"))
    provider.then(calls(bash("until test -e go; do sleep 0.02; done")), text("done"))
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "wait")
        await live.until("tool.called")
        answer = await revert(api, session, "stage", {"messageID": prompt})
        (folders.project / "go").touch()
    await api.wait(session)
    assert (answer.status, answer.tag) == (409, "ConflictError")
    assert (folders.project / "a.txt").exists()
