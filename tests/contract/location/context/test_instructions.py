"""Instruction files: which ones are told, in which order, and what a bad one does."""

from pathlib import Path

import pytest

from perdure.core.context import system_context
from perdure.location.context.instructions import Instructions
from perdure.location.context.registry import Subject
from tests.contract.location.opened_location import LocationFolders
from tests.fixtures import SESSION
from tests.requirements import requirement
from tests.support.unreadable import FILES


def instructions(folders: LocationFolders, directory: Path | None = None) -> Instructions:
    return Instructions(
        str(directory or folders.project),
        root=str(folders.project),
        environment=folders.environment,
    )


def subject(*discovered: Path) -> Subject:
    return Subject(session_id=SESSION, discovered=tuple(map(str, discovered)))


async def told(found: Instructions, *discovered: Path) -> str | None:
    """What the first turn is told; None when there is nothing to tell."""
    observation = await found.observe(subject(*discovered))
    generation = system_context.initialize(observation)
    assert isinstance(generation, system_context.Generation)
    return generation.baseline or None


async def is_unavailable(found: Instructions) -> bool:
    observation = await found.observe(subject())
    return [observed.available for observed in observation] == [False]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def inner(folders: LocationFolders) -> Path:
    directory = folders.project / "a" / "b"
    directory.mkdir(parents=True)
    return directory


@requirement("S78", "S77")
async def test_the_users_file_comes_first_then_from_the_location_up_to_the_root(
    folders: LocationFolders, inner: Path
) -> None:
    write(folders.home / ".config/opencode/AGENTS.md", "mine")
    write(folders.project / "AGENTS.md", "root")
    write(inner / "AGENTS.md", "near")
    write(folders.root / "AGENTS.md", "above the project")
    baseline = await told(instructions(folders, inner))
    assert baseline == (
        f"Instructions from {folders.home}/.config/opencode/AGENTS.md:\nmine\n\n"
        f"Instructions from {inner}/AGENTS.md:\nnear\n\n"
        f"Instructions from {folders.project}/AGENTS.md:\nroot"
    )


@requirement("S78")
async def test_without_any_file_there_is_nothing_to_tell(folders: LocationFolders) -> None:
    assert await instructions(folders).observe(subject()) == ()


@requirement("S78")
async def test_an_empty_file_counts(folders: LocationFolders) -> None:
    write(folders.project / "AGENTS.md", "")
    assert await told(instructions(folders)) == f"Instructions from {folders.project}/AGENTS.md:\n"


@requirement("S80")
@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
async def test_the_projects_files_can_be_switched_off_and_the_users_stays(
    folders: LocationFolders, value: str
) -> None:
    write(folders.home / ".config/opencode/AGENTS.md", "mine")
    write(folders.project / "AGENTS.md", "theirs")
    folders.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
    baseline = await told(instructions(folders))
    assert baseline is not None
    assert "mine" in baseline
    assert "theirs" not in baseline


@requirement("S79")
async def test_a_change_is_told_with_the_whole_ordered_set_and_the_end_of_all_with_a_sentence(
    folders: LocationFolders,
) -> None:
    mine = write(folders.home / ".config/opencode/AGENTS.md", "mine")
    root = write(folders.project / "AGENTS.md", "root")
    found = instructions(folders)
    first = system_context.initialize(await found.observe(subject()))
    assert isinstance(first, system_context.Generation)
    root.write_text("another root")
    second = system_context.reconcile(await found.observe(subject()), first.snapshot)
    assert isinstance(second, system_context.Updated)
    assert second.text.startswith("The instruction files have changed. These replace all")
    assert second.text.index("mine") < second.text.index("another root")
    mine.unlink()
    root.unlink()
    third = system_context.reconcile(await found.observe(subject()), second.snapshot)
    assert isinstance(third, system_context.Updated)
    assert third.text == (
        "There are no instruction files any more. Those given before no longer apply."
    )


async def test_unchanged_files_are_not_told_again(folders: LocationFolders) -> None:
    write(folders.project / "AGENTS.md", "root")
    found = instructions(folders)
    first = system_context.initialize(await found.observe(subject()))
    assert isinstance(first, system_context.Generation)
    again = system_context.reconcile(await found.observe(subject()), first.snapshot)
    assert isinstance(again, system_context.Unchanged)


@requirement("S44", "S34")
async def test_a_file_that_is_there_and_cannot_be_read_makes_the_source_unavailable(
    folders: LocationFolders,
) -> None:
    write(folders.project / "AGENTS.md", "theirs")
    mine = folders.home / ".config/opencode/AGENTS.md"
    mine.parent.mkdir(parents=True)
    # Not even the superuser can read the first page of a process.
    mine.symlink_to("/proc/self/mem")
    found = instructions(folders)
    assert await is_unavailable(found)
    mine.unlink()
    assert await told(found) is not None


@requirement("S44")
@pytest.mark.parametrize("fault", FILES)
async def test_what_is_in_the_place_of_a_file_and_cannot_be_read_is_waited_for(
    folders: LocationFolders, fault: str
) -> None:
    directory = folders.home / ".config/opencode"
    directory.mkdir(parents=True)
    FILES[fault](str(directory / "AGENTS.md"))
    assert await is_unavailable(instructions(folders))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe\x00binary", "not UTF-8"),
        (b"text with a\0 in it", "not text"),
        (b"x" * (256 * 1024 + 1), "larger than"),
    ],
    ids=["binary", "null", "huge"],
)
async def test_a_file_that_is_no_text_or_too_large_is_left_out_and_named(
    folders: LocationFolders, content: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(folders.home / ".config/opencode/AGENTS.md", "mine")
    bad = folders.project / "AGENTS.md"
    bad.write_bytes(content)
    found = instructions(folders)
    for _ in range(3):
        baseline = await told(found)
        assert baseline is not None
        assert baseline.endswith("mine")
    (record,) = caplog.records
    assert str(bad) in record.getMessage()
    assert reason in record.getMessage()


async def test_a_byte_order_mark_is_not_shown(folders: LocationFolders) -> None:
    (folders.project / "AGENTS.md").write_bytes(b"\xef\xbb\xbfroot")
    assert (
        await told(instructions(folders)) == f"Instructions from {folders.project}/AGENTS.md:\nroot"
    )


@requirement("S78")
async def test_a_link_that_leads_out_of_the_project_is_not_followed(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture
) -> None:
    secret = write(folders.root / "secret.txt", "the secret")
    (folders.project / "AGENTS.md").symlink_to(secret)
    found = instructions(folders)
    assert await found.observe(subject()) == ()
    assert await found.observe(subject()) == ()
    assert "leads out of the project" in caplog.text
    assert len(caplog.records) == 1


async def test_outside_of_any_repository_a_link_may_not_leave_its_directory(
    folders: LocationFolders,
) -> None:
    secret = write(folders.root / "secret.txt", "the secret")
    (folders.project / "AGENTS.md").symlink_to(secret)
    found = Instructions(str(folders.project), root="/", environment=folders.environment)
    assert await found.observe(subject()) == ()


async def test_a_link_inside_the_project_counts_once(folders: LocationFolders, inner: Path) -> None:
    write(folders.project / "AGENTS.md", "root")
    (inner / "AGENTS.md").symlink_to(folders.project / "AGENTS.md")
    assert await told(instructions(folders, inner)) == (
        f"Instructions from {folders.project}/AGENTS.md:\nroot"
    )


@requirement("S81")
async def test_what_lies_beside_a_file_that_was_read_is_found_the_nearest_last(
    folders: LocationFolders, inner: Path
) -> None:
    write(folders.project / "AGENTS.md", "root")
    outer = write(folders.project / "a" / "AGENTS.md", "a")
    near = write(inner / "AGENTS.md", "b")
    found = instructions(folders)
    assert found.find_for_file(str(inner / "code.py")) == (str(outer), str(near))
    assert found.find_for_file(str(folders.project / "code.py")) == ()
    assert found.find_for_file(str(folders.root / "elsewhere" / "code.py")) == ()
    baseline = await told(found, outer, near)
    assert baseline is not None
    assert baseline.index("root") < baseline.index("\na\n") < baseline.index("\nb")


@requirement("S81", "S80")
async def test_switched_off_project_files_are_not_found_by_reading_either(
    folders: LocationFolders, inner: Path
) -> None:
    near = write(inner / "AGENTS.md", "b")
    folders.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    found = instructions(folders)
    assert found.find_for_file(str(inner / "code.py")) == ()
    assert await found.observe(subject(near)) == ()
