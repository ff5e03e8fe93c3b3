"""Agents in Markdown files: their names, their fields, and files that are no agents."""

import os
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.config_file.entries import AgentEntry
from perdure.location.agents import agents
from perdure.location.agents.agents import Agents
from perdure.location.config.config import Configuration
from perdure.schema import codec
from perdure.schema.approval.permission import Rule
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders

CANARY = "canary-0e6d"


def entries(folders: LocationFolders) -> dict[str, AgentEntry]:
    return {change.name: change.entry for change in folders.settings().agents}


def load(folders: LocationFolders) -> Agents:
    return agents.load(folders.settings(), folders.environment)


@pytest.fixture
def folder(folders: LocationFolders) -> Path:
    return folders.project / ".opencode"


def test_the_front_matter_holds_the_fields_and_the_body_is_the_system_text(
    folders: LocationFolders, folder: Path
) -> None:
    text = """---
description: Looks for mistakes
mode: subagent
model: p/m/with/slashes
variant: fast
steps: 4
hidden: true
permissions:
  - action: edit
    resource: "*"
    effect: deny
---

You review code.

Mind {env:HOME}.
"""
    folders.write(folder / "agents" / "review.md", text)
    review = load(folders).get("review")
    assert review is not None
    assert (review.description, review.mode, review.steps) == ("Looks for mistakes", "subagent", 4)
    assert review.model == ModelRef(id="m/with/slashes", provider_id="p", variant="fast")
    assert review.permissions[-1] == Rule("edit", "*", "deny")
    assert review.system == "You review code.\n\nMind {env:HOME}."
    assert folders.settings().problems == ()


def test_the_name_is_the_path_below_the_folder(folders: LocationFolders, folder: Path) -> None:
    for path in ("agent/one.md", "agents/team/two.md", "mode/three.md", "modes/four.md"):
        folders.write(folder / path, "Do.")
    folders.write(folder / "modes" / "deep" / "not-found.md", "Do.")
    folders.write(folder / "agents" / ".md", "Do.")
    folders.write(folder / "agents" / "README.txt", "Not an agent.")
    folders.write(folders.project / "agents" / "not-config.md", "Do.")
    found = entries(folders)
    assert list(found) == ["one", "team/two", "three", "four"]
    assert [entry.mode or None for entry in found.values()] == [None, None, "primary", "primary"]


def test_older_front_matter_is_understood(folders: LocationFolders, folder: Path) -> None:
    text = """---
description: Old
temperature: 0.1
reasoningEffort: high
maxSteps: 3
tools:
  write: false
permission:
  bash:
    "git *": allow
    "*": ask
---
Old body.
"""
    folders.write(folder / "agent" / "old.md", text)
    entry = entries(folders)["old"]
    assert (entry.steps, entry.system) == (3, "Old body.")
    assert entry.request
    assert entry.request.body == {"temperature": 0.1, "reasoning_effort": "high"}
    assert entry.permissions == (
        Rule("edit", "*", "deny"),
        Rule("bash", "git *", "allow"),
        Rule("bash", "*", "ask"),
    )


def test_files_lie_over_the_documents_of_their_directory_and_below_nearer_ones(
    folders: LocationFolders, folder: Path
) -> None:
    inner = folders.project / "inner"
    for description, path in (
        ("user document", folders.home / ".config/opencode/opencode.json"),
        ("dot document", folder / "opencode.json"),
        ("near document", inner / ".opencode" / "opencode.json"),
    ):
        folders.write(path, {"agents": {"a": {"description": description}}})
    steps = [
        folders.home / ".config" / "opencode" / "agents" / "a.md",
        folder / "agents" / "a.md",
        inner / ".opencode" / "agents" / "a.md",
    ]
    for path in steps:
        folders.write(path, f"---\ndescription: {path.parent}\n---\n")
    said = [change.entry.description for change in folders.settings(inner).agents]
    expected: list[object] = ["user document", str(steps[0].parent), "dot document"]
    assert said == [*expected, str(steps[1].parent), "near document", str(steps[2].parent)]


def test_a_link_out_of_the_project_is_not_followed_and_one_of_the_users_is(
    folders: LocationFolders, folder: Path
) -> None:
    secret = folders.write(folders.home / "secret", CANARY)
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "leak.md").symlink_to(secret)
    folders.write(folders.home / "elsewhere" / "mine.md", f"{CANARY} too")
    (folder / "agents" / "folder").symlink_to(folders.home / "elsewhere")
    settings = folders.settings()
    assert CANARY not in repr(settings.agents)
    assert len(settings.problems) == 2
    users = folders.home / ".config" / "opencode" / "agents"
    users.mkdir(parents=True)
    (users / "mine.md").symlink_to(folders.home / "elsewhere" / "mine.md")
    assert entries(folders)["mine"].system == f"{CANARY} too"


def test_folders_that_contain_themselves_are_searched_once(
    folders: LocationFolders, folder: Path
) -> None:
    folders.write(folder / "agents" / "deep" / "a.md", "Do.")
    (folder / "agents" / "deep" / "up").symlink_to(folder / "agents")
    (folder / "agents" / "loop").symlink_to(folder / "agents" / "loop")
    assert list(entries(folders)) == ["deep/a"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"text\x00text", "not text"),
        (b"---\na: b\n- c\n---\nbody", "line 3"),
        (b"---\n- a list\n---\nbody", "keys and values"),
        (b"x" * (limits.AGENT_FILE_BYTES_MAX + 1), "larger than"),
        (b"---\nsteps: 0\n---\n", "agents.bad.steps"),
    ],
)
def test_a_file_that_is_no_agent_is_reported_and_hurts_no_other(
    folders: LocationFolders, folder: Path, content: bytes, reason: str
) -> None:
    folders.write(folder / "agents" / "good.md", "Do.")
    (folder / "agents" / "bad.md").write_bytes(content)
    settings = folders.settings()
    assert {each.name: each.entry for each in settings.agents}["good"].system == "Do."
    [problem] = settings.problems
    assert problem.path == str(folder / "agents" / "bad.md")
    assert reason in problem.message


def test_things_that_are_not_files_do_no_harm(folders: LocationFolders, folder: Path) -> None:
    folders.write(folder / "agents" / "good.md", "Do.")
    os.mkfifo(folder / "agents" / "pipe.md")
    (folder / "agents" / "folder.md").mkdir()
    (folder / "agents" / "gone.md").symlink_to(folder / "nowhere")
    (folder / "mode").write_text("not a folder")
    os.mkdir(os.fsencode(folder / "agents") + b"/\xff")
    Path(os.fsdecode(os.fsencode(folder / "agents") + b"/\xff.md")).write_text("Do.")
    found = load(folders)
    assert found.get("good") is not None
    assert b"good" in codec.encode(found.list())


def test_a_byte_order_mark_and_foreign_line_ends_are_taken(
    folders: LocationFolders, folder: Path
) -> None:
    folders.write(
        folder / "agents" / "a.md", "\ufeff---\r\ndescription: Hi\r\n---\r\nOne\r\nTwo\r\n"
    )
    entry = entries(folders)["a"]
    assert (entry.description, entry.system) == ("Hi", "One\nTwo")


def test_the_number_of_files_and_folders_is_bounded(folders: LocationFolders, folder: Path) -> None:
    many = folder / "agents"
    many.mkdir(parents=True)
    for index in range(limits.AGENT_FILES_MAX + 5):
        (many / f"a{index:05}.md").write_text("Do.")
    for index in range(limits.AGENT_FOLDERS_MAX + 5):
        (folder / "agent" / f"d{index:05}").mkdir(parents=True)
    settings = folders.settings()
    assert len(settings.agents) == limits.AGENT_FILES_MAX
    messages = "\n".join(problem.message for problem in settings.problems)
    assert f"more than {limits.AGENT_FILES_MAX} agents" in messages
    assert f"more than {limits.AGENT_FOLDERS_MAX} folders" in messages


def test_changes_are_seen_and_unchanged_files_are_not_read_again(
    folders: LocationFolders, folder: Path
) -> None:
    folders.write(folder / "agents" / "a.md", "One.")
    configuration, root = Configuration(folders.environment), str(folders.project)
    first = configuration.load(root, root=root)
    assert configuration.load(root, root=root, before=first) is first
    folders.write(folder / "agents" / "a.md", "Two, longer.")
    folders.write(folder / "agents" / "b.md", "New.")
    second = configuration.load(root, root=root, before=first)
    assert {each.name: each.entry.system for each in second.agents} == {
        "a": "Two, longer.",
        "b": "New.",
    }
    assert second.documents[-1].path.endswith("b.md")
    (folder / "agents" / "a.md").unlink()
    third = configuration.load(root, root=root, before=second)
    assert [each.name for each in third.agents] == ["b"]
    assert third.documents[-1] is second.documents[-1]


def test_what_an_agent_file_adds_to_requests_is_not_public(
    folders: LocationFolders, folder: Path
) -> None:
    text = f"---\nrequest:\n  headers:\n    x-secret: {CANARY}\n---\nDo."
    folders.write(folder / "agents" / "a.md", text)
    found = load(folders)
    assert found.options("a").request.headers == {"x-secret": CANARY}
    assert CANARY not in repr(found.options("a"))
    assert CANARY.encode() not in codec.encode(found.list())
