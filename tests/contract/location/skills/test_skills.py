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
from perdure.location.skills.skills import SkillDirectories, Skills
from tests.contract.location.opened_location import Place, nobody_may_look
from tests.requirements import requirement

BUILT_IN = "configure-perdure"


def found_in(place: Place, directory: Path | None = None) -> Skills:
    """The skills of a Location whose project is `place.project`."""
    at = directory or place.project
    host = place.host()
    look = SkillDirectories(
        directory=str(at),
        root=str(place.project),
        environment=place.environment,
        clock=SystemClock(),
        downloads=host.skill_downloads,
    )
    return skills.open_skills(look, place.settings(at))


def names(found: Skills) -> list[str]:
    return [skill.name for skill in found.list() if skill.name != BUILT_IN]


def texts(found: Skills) -> dict[str, str]:
    return {skill.name: skill.content for skill in found.list() if skill.name != BUILT_IN}


def config(place: Place) -> Path:
    return place.home / ".config" / "opencode"


def skill(name: str, text: str = "text", description: str = "What it is for.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{text}\n"


@pytest.fixture
def shelf(place: Place) -> Path:
    """The directory that most tests put skills into."""
    directory = place.project / ".opencode" / "skills"
    directory.mkdir(parents=True)
    return directory


@requirement("S90")
def test_skills_are_found_in_the_config_directory_and_from_the_root_to_the_location(
    place: Place,
) -> None:
    inner = place.project / "a" / "b"
    place.write(config(place) / "skill" / "one.md", "1")
    place.write(config(place) / "skills" / "two.md", "2")
    place.write(place.project / ".opencode" / "skill" / "three" / "SKILL.md", skill("three"))
    place.write(place.project / ".opencode" / "skills" / "four.md", "4")
    place.write(inner / ".opencode" / "skills" / "five.md", "5")
    place.write(place.root / ".opencode" / "skills" / "above.md", "above the project")
    place.write(inner / "below" / ".opencode" / "skills" / "below.md", "below the Location")
    assert names(found_in(place, inner)) == ["five", "four", "one", "three", "two"]


@requirement("S90")
def test_a_later_source_replaces_an_earlier_skill_of_the_same_name(place: Place) -> None:
    inner = place.project / "a"
    extra = place.root / "extra"
    place.configure_user({"skills": [str(extra)]})
    sources = [
        config(place) / "skill",
        config(place) / "skills",
        place.project / ".opencode" / "skill",
        place.project / ".opencode" / "skills",
        inner / ".opencode" / "skill",
        inner / ".opencode" / "skills",
        extra,
    ]
    for source in sources:
        place.write(source / "tea.md", str(source))
    found = found_in(place, inner)
    while sources:
        assert texts(found) == {"tea": str(sources[-1])}
        (sources.pop() / "tea.md").unlink()
    assert texts(found) == {}


def test_the_built_in_skill_can_be_replaced(place: Place, shelf: Path) -> None:
    found = found_in(place)
    built_in = found.get(BUILT_IN)
    assert built_in is not None
    assert "opencode.json" in built_in.content
    place.write(shelf / f"{BUILT_IN}.md", "ours")
    replaced = found.get(BUILT_IN)
    assert replaced is not None
    assert replaced.content == "ours"


@pytest.mark.parametrize("value", ["1", "true", "True"])
def test_skills_of_the_project_can_be_switched_off(place: Place, shelf: Path, value: str) -> None:
    place.write(config(place) / "skills" / "mine.md", "mine")
    place.write(shelf / "theirs.md", "theirs")
    place.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
    assert names(found_in(place)) == ["mine"]


def test_configured_directories_are_relative_to_the_location_or_the_home(place: Place) -> None:
    place.configure_user({"skills": ["~/mine", "near", str(place.root / "far"), "missing"]})
    place.write(place.home / "mine" / "one.md", "1")
    place.write(place.project / "near" / "two.md", "2")
    place.write(place.root / "far" / "three.md", "3")
    assert names(found_in(place)) == ["one", "three", "two"]


def test_a_project_can_name_directories_of_its_own_only(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.configure({"skills": ["inside", "~/diary", "../outside"]})
    place.write(place.project / "inside" / "one.md", "1")
    place.write(place.home / "diary" / "secret.md", "secret")
    place.write(place.root / "outside" / "secret.md", "secret")
    assert names(found_in(place)) == ["one"]
    assert str(place.home / "diary") in caplog.text


def test_a_directory_yields_its_files_and_every_skill_file_below_it(
    place: Place, shelf: Path
) -> None:
    place.write(shelf / "plain.md", "plain")
    place.write(shelf / ".hidden.md", "hidden")
    place.write(shelf / "notes.txt", "no skill")
    place.write(shelf / "one" / "SKILL.md", skill("one"))
    place.write(shelf / "one" / "more.md", "belongs to one")
    place.write(shelf / "one" / "deep" / ".deeper" / "SKILL.md", skill("deep"))
    place.write(shelf / "nameless" / "SKILL.md", "no name")
    place.write(shelf / ".git" / "SKILL.md", skill("git"))
    place.write(shelf / "node_modules" / "x" / "SKILL.md", skill("package"))
    (shelf / "directory.md").mkdir()
    assert names(found_in(place)) == [".hidden", "deep", "one", "plain"]


def test_links_are_followed_and_cycles_survived(place: Place, shelf: Path) -> None:
    place.write(place.project / "shared" / "tea" / "SKILL.md", skill("tea"))
    (shelf / "tea").symlink_to(place.project / "shared" / "tea")
    (shelf / "again").symlink_to(shelf)
    (shelf / "tea" / "up").symlink_to("../..")
    (shelf / "self.md").symlink_to("self.md")
    (shelf / "gone.md").symlink_to("nowhere")
    found = found_in(place)
    assert names(found) == ["tea"]
    (shelf / "nowhere").write_text("here now")
    assert names(found) == ["gone", "tea"]


def test_a_link_of_the_project_cannot_show_a_file_from_elsewhere(
    place: Place, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = place.write(place.home / ".ssh" / "key", "secret")
    place.write(place.home / "notes" / "SKILL.md", skill("notes"))
    (shelf / "leak.md").symlink_to(secret)
    (shelf / "notes").symlink_to(place.home / "notes")
    found = found_in(place)
    assert names(found) == []
    assert str(shelf / "leak.md") in caplog.text
    (config(place) / "skills").mkdir(parents=True)
    (config(place) / "skills" / "notes").symlink_to(place.home / "notes")
    assert names(found) == ["notes"]


def test_without_a_project_a_link_must_stay_below_its_own_directory(place: Place) -> None:
    opened = factory.open_location(place.ref, place.host())
    assert opened.root == "/"
    place.write(place.home / "secret", "secret")
    shelf = place.project / ".opencode" / "skills"
    shelf.mkdir(parents=True)
    (shelf / "leak.md").symlink_to(place.home / "secret")
    place.write(shelf / "fine.md", "fine")
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
    place: Place, shelf: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    place.write(shelf / "good.md", "good")
    bad = shelf / name
    bad.parent.mkdir(exist_ok=True)
    bad.write_bytes(BAD_FILES[name])
    found = found_in(place)
    for _ in range(3):
        assert names(found) == ["good"]
    assert [str(bad) in record.getMessage() for record in caplog.records] == [True]
    bad.write_bytes(BAD_FILES[name] + b"\0")
    for _ in range(3):
        assert names(found) == ["good"]
    assert len(caplog.records) == 2
    bad.write_text(skill("repaired"))
    assert names(found) == ["good", "repaired"]


def test_what_is_no_regular_file_is_left_alone(place: Place, shelf: Path) -> None:
    os.mkfifo(shelf / "pipe.md")
    (shelf / "device.md").symlink_to("/dev/zero")
    place.write(shelf / "good.md", "good")
    assert names(found_in(place)) == ["good"]


def test_a_name_that_is_not_utf_8_is_left_out(
    place: Place, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open(os.fsencode(shelf) + b"/\xff.md", "w") as file:
        file.write(skill("odd"))
    place.write(shelf / "good.md", "good")
    assert names(found_in(place)) == ["good"]
    assert caplog.text.encode().count("\ufffd.md is left out".encode()) == 1


@requirement("S90")
def test_what_is_added_edited_moved_or_removed_is_seen_at_the_next_look(
    place: Place, shelf: Path
) -> None:
    found = found_in(place)
    assert texts(found) == {}
    place.write(shelf / "tea.md", "boil")
    assert texts(found) == {"tea": "boil"}
    # The same length, and the same moment as far as a coarse clock can tell.
    place.write(shelf / "tea.md", "brew")
    assert texts(found) == {"tea": "brew"}
    place.write(shelf / "deep" / "er" / "SKILL.md", skill("deep"))
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


def test_an_unchanged_shelf_gives_the_very_same_answer(place: Place, shelf: Path) -> None:
    place.write(shelf / "tea.md", "boil")
    found = found_in(place)
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
    place: Place, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(limits.SKILLS_MAX + 10):
        (shelf / f"{number:04}.md").write_text("text")
    found = found_in(place)
    assert len(found.list()) == limits.SKILLS_MAX
    found.list()
    assert caplog.text.count("more than") == 1


def test_a_directory_without_end_is_not_walked_to_its_end(
    place: Place, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(limits.SKILL_DIRECTORIES_MAX + 10):
        (shelf / f"{number:05}").mkdir()
    place.write(shelf / "00000" / "SKILL.md", skill("first"))
    assert names(found_in(place)) == ["first"]
    assert "not searched any further" in caplog.text


def test_a_walk_survives_files_that_vanish_under_it(place: Place, shelf: Path) -> None:
    for number in range(30):
        place.write(shelf / str(number) / "SKILL.md", skill(f"s{number}"))
    directories = sorted(shelf.iterdir())
    found = found_in(place)
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
    place: Place, shelf: Path
) -> None:
    for number in range(50):
        place.write(shelf / f"s{number}" / "SKILL.md", skill(f"s{number}"))
        place.write(shelf / f"s{number}" / "scripts" / "run.sh", "true")
    settled(shelf)
    found = found_in(place)
    assert len(names(found)) == 50
    assert cpu_seconds(found.list) < 0.001


def test_an_unchanged_file_is_not_read_again(place: Place, shelf: Path) -> None:
    path = place.write(shelf / "tea.md", "boil")
    place.write(shelf / "toast.md", "toast")
    settled(shelf)
    found = found_in(place)
    assert texts(found)["tea"] == "boil"
    before = cached_files.signature(str(path))
    status = path.stat()
    path.write_text("brew")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cached_files.signature(str(path)) == before
    # Everything that could tell was put back, so the first reading is still believed.
    assert texts(found)["tea"] == "boil"
    place.write(shelf / "new.md", "new")
    assert texts(found) == {"tea": "boil", "toast": "toast", "new": "new"}


def cpu_seconds(look: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(20):
        start = time.process_time()
        for _ in range(10):
            look()
        taken.append((time.process_time() - start) / 10)
    return min(taken)
