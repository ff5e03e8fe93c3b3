"""Skills of a Location: where they are found, what overrides what, and what changes are seen."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.clock import SystemClock
from perdure.host.files import cached_files
from perdure.location import factory
from perdure.location.skills import skills
from perdure.location.skills.files import SkillFiles
from perdure.location.skills.skills import SkillDirectories, SkillFolders, Skills
from tests.contract.location.opened_location import LocationFolders, nobody_may_look
from tests.requirements import requirement

BUILT_IN = "configure-perdure"


def found_in(folders: LocationFolders, directory: Path | None = None) -> Skills:
    """The skills of a Location whose project is `place.project`."""
    at = directory or folders.project
    host = folders.host()
    look = SkillDirectories(
        directory=str(at),
        root=str(folders.project),
        environment=folders.environment,
        folders=SkillFolders(SystemClock()),
        downloads=host.skill_downloads,
    )
    return skills.open_skills(look, folders.settings(at))


def names(found: Skills) -> list[str]:
    return [skill.name for skill in found.list() if skill.name != BUILT_IN]


def texts(found: Skills) -> dict[str, str]:
    return {skill.name: skill.content for skill in found.list() if skill.name != BUILT_IN}


def config(folders: LocationFolders) -> Path:
    return folders.home / ".config" / "opencode"


def skill(name: str, text: str = "text", description: str = "What it is for.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{text}\n"


@pytest.fixture
def shelf(folders: LocationFolders) -> Path:
    """The directory that most tests put skills into."""
    directory = folders.project / ".opencode" / "skills"
    directory.mkdir(parents=True)
    return directory


@requirement("S90")
def test_skills_are_found_in_the_config_directory_and_from_the_root_to_the_location(
    folders: LocationFolders,
) -> None:
    inner = folders.project / "a" / "b"
    folders.write(config(folders) / "skill" / "one.md", "1")
    folders.write(config(folders) / "skills" / "two.md", "2")
    folders.write(folders.project / ".opencode" / "skill" / "three" / "SKILL.md", skill("three"))
    folders.write(folders.project / ".opencode" / "skills" / "four.md", "4")
    folders.write(inner / ".opencode" / "skills" / "five.md", "5")
    folders.write(folders.root / ".opencode" / "skills" / "above.md", "above the project")
    folders.write(inner / "below" / ".opencode" / "skills" / "below.md", "below the Location")
    assert names(found_in(folders, inner)) == ["five", "four", "one", "three", "two"]


@requirement("S90")
def test_a_later_source_replaces_an_earlier_skill_of_the_same_name(
    folders: LocationFolders,
) -> None:
    inner = folders.project / "a"
    extra = folders.root / "extra"
    folders.configure_user({"skills": [str(extra)]})
    sources = [
        config(folders) / "skill",
        config(folders) / "skills",
        folders.project / ".opencode" / "skill",
        folders.project / ".opencode" / "skills",
        inner / ".opencode" / "skill",
        inner / ".opencode" / "skills",
        extra,
    ]
    for source in sources:
        folders.write(source / "tea.md", str(source))
    found = found_in(folders, inner)
    while sources:
        assert texts(found) == {"tea": str(sources[-1])}
        (sources.pop() / "tea.md").unlink()
    assert texts(found) == {}


def test_the_built_in_skill_can_be_replaced(folders: LocationFolders, shelf: Path) -> None:
    found = found_in(folders)
    built_in = found.get(BUILT_IN)
    assert built_in is not None
    assert "opencode.json" in built_in.content
    folders.write(shelf / f"{BUILT_IN}.md", "ours")
    replaced = found.get(BUILT_IN)
    assert replaced is not None
    assert replaced.content == "ours"


@pytest.mark.parametrize("value", ["1", "true", "True"])
def test_skills_of_the_project_can_be_switched_off(
    folders: LocationFolders, shelf: Path, value: str
) -> None:
    folders.write(config(folders) / "skills" / "mine.md", "mine")
    folders.write(shelf / "theirs.md", "theirs")
    folders.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
    assert names(found_in(folders)) == ["mine"]


def test_configured_directories_are_relative_to_the_location_or_the_home(
    folders: LocationFolders,
) -> None:
    folders.configure_user({"skills": ["~/mine", "near", str(folders.root / "far"), "missing"]})
    folders.write(folders.home / "mine" / "one.md", "1")
    folders.write(folders.project / "near" / "two.md", "2")
    folders.write(folders.root / "far" / "three.md", "3")
    assert names(found_in(folders)) == ["one", "three", "two"]


def test_a_project_can_name_directories_of_its_own_only(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture
) -> None:
    folders.configure({"skills": ["inside", "~/diary", "../outside"]})
    folders.write(folders.project / "inside" / "one.md", "1")
    folders.write(folders.home / "diary" / "secret.md", "secret")
    folders.write(folders.root / "outside" / "secret.md", "secret")
    assert names(found_in(folders)) == ["one"]
    assert str(folders.home / "diary") in caplog.text


def test_a_directory_yields_its_files_and_every_skill_file_below_it(
    folders: LocationFolders, shelf: Path
) -> None:
    folders.write(shelf / "plain.md", "plain")
    folders.write(shelf / ".hidden.md", "hidden")
    folders.write(shelf / "notes.txt", "no skill")
    folders.write(shelf / "one" / "SKILL.md", skill("one"))
    folders.write(shelf / "one" / "more.md", "belongs to one")
    folders.write(shelf / "one" / "deep" / ".deeper" / "SKILL.md", skill("deep"))
    folders.write(shelf / "nameless" / "SKILL.md", "no name")
    folders.write(shelf / ".git" / "SKILL.md", skill("git"))
    folders.write(shelf / "node_modules" / "x" / "SKILL.md", skill("package"))
    (shelf / "directory.md").mkdir()
    assert names(found_in(folders)) == [".hidden", "deep", "one", "plain"]


def test_links_are_followed_and_cycles_survived(folders: LocationFolders, shelf: Path) -> None:
    folders.write(folders.project / "shared" / "tea" / "SKILL.md", skill("tea"))
    (shelf / "tea").symlink_to(folders.project / "shared" / "tea")
    (shelf / "again").symlink_to(shelf)
    (shelf / "tea" / "up").symlink_to("../..")
    (shelf / "self.md").symlink_to("self.md")
    (shelf / "gone.md").symlink_to("nowhere")
    found = found_in(folders)
    assert names(found) == ["tea"]
    (shelf / "nowhere").write_text("here now")
    assert names(found) == ["gone", "tea"]


def test_a_link_of_the_project_cannot_show_a_file_from_elsewhere(
    folders: LocationFolders, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = folders.write(folders.home / ".ssh" / "key", "secret")
    folders.write(folders.home / "notes" / "SKILL.md", skill("notes"))
    (shelf / "leak.md").symlink_to(secret)
    (shelf / "notes").symlink_to(folders.home / "notes")
    found = found_in(folders)
    assert names(found) == []
    assert str(shelf / "leak.md") in caplog.text
    (config(folders) / "skills").mkdir(parents=True)
    (config(folders) / "skills" / "notes").symlink_to(folders.home / "notes")
    assert names(found) == ["notes"]


def test_without_a_project_a_link_must_stay_below_its_own_directory(
    folders: LocationFolders,
) -> None:
    opened = factory.open_location(folders.ref, folders.host())
    assert opened.root == "/"
    folders.write(folders.home / "secret", "secret")
    shelf = folders.project / ".opencode" / "skills"
    shelf.mkdir(parents=True)
    (shelf / "leak.md").symlink_to(folders.home / "secret")
    folders.write(shelf / "fine.md", "fine")
    assert names(opened.skills) == ["fine"]


BAD_FILES: dict[str, bytes] = {
    "empty.md": b"",
    "binary.md": b"\x7fELF\0\0",
    "latin.md": "für".encode("latin-1"),
    "huge.md": b"x" * (limits.SKILL_FILE_BYTES_MAX + 1),
    "broken.md": b"---\nname: a\n   - b\nc\n---\ntext",
    "nameless/SKILL.md": b"text",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_left_out_and_named_once_for_each_version(
    folders: LocationFolders, shelf: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folders.write(shelf / "good.md", "good")
    bad = shelf / name
    bad.parent.mkdir(exist_ok=True)
    bad.write_bytes(BAD_FILES[name])
    found = found_in(folders)
    for _ in range(3):
        assert names(found) == ["good"]
    assert [str(bad) in record.getMessage() for record in caplog.records] == [True]
    bad.write_bytes(BAD_FILES[name] + b"\0")
    for _ in range(3):
        assert names(found) == ["good"]
    assert len(caplog.records) == 2
    bad.write_text(skill("repaired"))
    assert names(found) == ["good", "repaired"]


def test_what_is_no_regular_file_is_left_alone(folders: LocationFolders, shelf: Path) -> None:
    os.mkfifo(shelf / "pipe.md")
    (shelf / "device.md").symlink_to("/dev/zero")
    folders.write(shelf / "good.md", "good")
    assert names(found_in(folders)) == ["good"]


def test_a_name_that_is_not_utf_8_is_left_out(
    folders: LocationFolders, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open(os.fsencode(shelf) + b"/\xff.md", "w") as file:
        file.write(skill("odd"))
    folders.write(shelf / "good.md", "good")
    assert names(found_in(folders)) == ["good"]
    assert caplog.text.encode().count("\ufffd.md is left out".encode()) == 1


@requirement("S90")
def test_what_is_added_edited_moved_or_removed_is_seen_at_the_next_look(
    folders: LocationFolders, shelf: Path
) -> None:
    found = found_in(folders)
    assert texts(found) == {}
    folders.write(shelf / "tea.md", "boil")
    assert texts(found) == {"tea": "boil"}
    # The same length, and the same moment as far as a coarse clock can tell.
    folders.write(shelf / "tea.md", "brew")
    assert texts(found) == {"tea": "brew"}
    folders.write(shelf / "deep" / "er" / "SKILL.md", skill("deep"))
    assert texts(found) == {"tea": "brew", "deep": "text"}
    (shelf / "deep").rename(shelf / "moved")
    assert texts(found) == {"tea": "brew", "deep": "text"}
    moved = found.get("deep")
    assert moved is not None
    assert moved.location == str(shelf / "moved" / "er" / "SKILL.md")
    (shelf / "moved" / "er" / "SKILL.md").unlink()
    (shelf / "tea.md").unlink()
    assert texts(found) == {}
    assert found.get("tea") is None


def test_an_unchanged_shelf_gives_the_very_same_answer(
    folders: LocationFolders, shelf: Path
) -> None:
    folders.write(shelf / "tea.md", "boil")
    found = found_in(folders)
    assert found.list() is found.list()


def test_what_cannot_be_looked_at_just_now_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("boil")
    (tmp_path / "toast.md").write_text("toast")
    files = SkillFiles(str(tmp_path), clock=SystemClock())
    before = files.list()
    with nobody_may_look(tmp_path):
        assert files.list() is before
    (tmp_path / "tea.md").unlink()
    assert [skill.name for skill in files.list()] == ["toast"]


def test_the_number_of_skills_is_bounded(
    folders: LocationFolders, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(limits.SKILLS_MAX + 10):
        (shelf / f"{number:04}.md").write_text("text")
    found = found_in(folders)
    assert len(found.list()) == limits.SKILLS_MAX
    found.list()
    assert caplog.text.count("more than") == 1


def test_a_directory_without_end_is_not_walked_to_its_end(
    folders: LocationFolders, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(limits.SKILL_DIRECTORIES_MAX + 10):
        (shelf / f"{number:05}").mkdir()
    folders.write(shelf / "00000" / "SKILL.md", skill("first"))
    assert names(found_in(folders)) == ["first"]
    assert "not searched any further" in caplog.text


def test_a_walk_survives_files_that_vanish_under_it(folders: LocationFolders, shelf: Path) -> None:
    for number in range(30):
        folders.write(shelf / str(number) / "SKILL.md", skill(f"s{number}"))
    directories = sorted(shelf.iterdir())
    found = found_in(folders)
    for directory in directories:
        (directory / "SKILL.md").unlink()
        directory.rmdir()
        assert len(names(found)) == len(list(shelf.iterdir()))


def settled(path: Path) -> None:
    """Make everything below `path` look as if it had not been touched for a while."""
    past = time.time_ns() - 3_600_000_000_000
    for folder, _, files in os.walk(path, topdown=False):
        for name in (*files, "."):
            os.utime(os.path.join(folder, name), ns=(past, past))


def test_an_unchanged_shelf_of_fifty_costs_well_under_a_millisecond(
    folders: LocationFolders, shelf: Path
) -> None:
    for number in range(50):
        folders.write(shelf / f"s{number}" / "SKILL.md", skill(f"s{number}"))
        folders.write(shelf / f"s{number}" / "scripts" / "run.sh", "true")
    settled(shelf)
    found = found_in(folders)
    assert len(names(found)) == 50
    assert cpu_seconds(found.list) < 0.001


def test_an_unchanged_file_is_not_read_again(folders: LocationFolders, shelf: Path) -> None:
    path = folders.write(shelf / "tea.md", "boil")
    folders.write(shelf / "toast.md", "toast")
    settled(shelf)
    found = found_in(folders)
    assert texts(found)["tea"] == "boil"
    before = cached_files.signature(str(path))
    status = path.stat()
    path.write_text("brew")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cached_files.signature(str(path)) == before
    # Everything that could tell was put back, so the first reading is still believed.
    assert texts(found)["tea"] == "boil"
    folders.write(shelf / "new.md", "new")
    assert texts(found) == {"tea": "boil", "toast": "toast", "new": "new"}


def cpu_seconds(look: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(20):
        start = time.process_time()
        for _ in range(10):
            look()
        taken.append((time.process_time() - start) / 10)
    return min(taken)
