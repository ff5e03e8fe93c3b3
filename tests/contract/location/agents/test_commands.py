"""The commands of a Location: built in, configured, and from Markdown files."""

from pathlib import Path

import pytest

from perdure.location import factory
from perdure.location.registry import LocationRegistry
from perdure.schema.models.model import ModelRef
from perdure.schema.settings.command import CommandInfo
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement
from tests.support.unreadable import ANYWHERE, unreadable


@pytest.fixture
def folders(tmp_path: Path) -> LocationFolders:
    return LocationFolders(tmp_path)


def listed(folders: LocationFolders) -> dict[str, CommandInfo]:
    found = factory.open_location(folders.ref, folders.host()).commands.list()
    assert [command.name for command in found] == sorted(command.name for command in found)
    return {command.name: command for command in found}


def test_the_built_in_commands_are_there_without_configuration(folders: LocationFolders) -> None:
    found = listed(folders)
    assert set(found) == {"init", "review"}
    assert found["review"].subtask is True
    assert all("$ARGUMENTS" in command.template for command in found.values())


def test_a_configured_command_is_listed_and_a_broken_one_is_left_out_alone(
    folders: LocationFolders,
) -> None:
    good = {"template": "Ship it", "description": "d", "agent": "build", "model": "a/b/c"}
    broken = {"template": 3}
    folders.configure({"command": {"ship": good, "broken": broken, "odd": "text"}})
    found = listed(folders)
    assert set(found) == {"init", "review", "ship"}
    assert found["ship"] == CommandInfo(
        name="ship",
        template="Ship it",
        description="d",
        agent="build",
        model=ModelRef(id="b/c", provider_id="a"),
    )
    problems = [str(problem) for problem in folders.settings().problems]
    assert sum("commands.broken" in problem for problem in problems) == 1


def test_files_are_named_by_their_path_and_lie_over_the_configuration(
    folders: LocationFolders,
) -> None:
    folders.git("init")
    folders.configure({"commands": {"ship": {"template": "configured"}}})
    top = folders.project / ".opencode" / "command"
    folders.write(top / "ship.md", "---\ndescription: From a file\nsubtask: true\n---\nShip $1\n")
    folders.write(top / "git" / "squash.md", "Squash.")
    folders.write(folders.home / ".config/opencode/commands/mine.md", "Mine.")
    folders.write(folders.home / ".config/opencode/command/ship.md", "The user's.")
    found = listed(folders)
    assert found["ship"].template == "Ship $1"
    assert (found["ship"].description, found["ship"].subtask) == ("From a file", True)
    assert found["git/squash"].template == "Squash."
    assert found["mine"].template == "Mine."


def test_a_file_that_is_no_command_is_reported_once_and_left_out(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture
) -> None:
    top = folders.project / ".opencode" / "commands"
    folders.write(folders.root / "secret.md", "secret")
    folders.write(top / "empty.md", "---\ndescription: d\n---\n")
    folders.write(top / "wrong.md", "---\nsubtask: perhaps\n---\nText")
    folders.write(top / "huge.md", "x" * (300 * 1024))
    folders.write(top / "fine.md", "Fine.")
    (top / "binary.md").write_bytes(b"\xff\xfe\x00")
    (top / "link.md").symlink_to(folders.root / "secret.md")
    (top / "loop").symlink_to(top)
    (top / "folder.md").mkdir()
    commands = factory.open_location(folders.ref, folders.host()).commands
    assert {command.name for command in commands.list()} == {"fine", "init", "review"}
    commands.list()
    for name in ("empty", "wrong", "huge", "binary", "link", "folder"):
        assert sum(f"{name}.md is ignored" in line for line in caplog.messages) == 1


@requirement("S9")
@pytest.mark.parametrize("fault", ANYWHERE)
@pytest.mark.parametrize(
    "hidden", [".opencode", ".opencode/commands", ".opencode/commands/deep", "deep/one.md"]
)
async def test_a_command_that_cannot_be_looked_at_is_as_it_was_last_read(
    folders: LocationFolders, hidden: str, fault: str
) -> None:
    """Also when the configuration changes with it, so that the Location is built anew."""
    top = folders.project / ".opencode"
    folders.write(top / "commands" / "deep" / "one.md", "One.")
    folders.write(top / "skills" / "two" / "SKILL.md", "---\nname: two\ndescription: d\n---\nTwo.")
    folders.write(top / "agents" / "three.md", "---\ndescription: d\n---\nThree.")
    path = folders.project / (f".opencode/commands/{hidden}" if "one.md" in hidden else hidden)
    registry = LocationRegistry(folders.host())

    async def offered() -> list[bool]:
        location = await registry.get(folders.ref)
        commands = {command.name for command in location.commands.list()}
        return ["deep/one" in commands, location.skills.get("two") is not None]

    assert await offered() == [True, True]
    with unreadable(str(path), ANYWHERE[fault], aside=str(folders.root / "aside")):
        assert await offered() == [True, True]
    assert await offered() == [True, True]
    path.rename(folders.root / "gone")
    assert await offered() == [False, hidden != ".opencode"]


def test_project_files_are_not_read_when_they_are_disabled(tmp_path: Path) -> None:
    folders = LocationFolders(tmp_path, OPENCODE_DISABLE_PROJECT_CONFIG="1")
    folders.write(folders.project / ".opencode" / "command" / "x.md", "X.")
    assert "x" not in listed(folders)
