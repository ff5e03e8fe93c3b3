"""Configuration on disk: which files count, in which order, and what a bad one does."""

import logging
import os
from pathlib import Path

import pytest

from perdure.host.files.cached_files import CachedFiles
from perdure.location.config.config import Configuration
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders


def model(name: str) -> dict[str, str]:
    return {"model": f"p/{name}"}


def test_without_any_file_there_is_a_default_for_everything(folders: LocationFolders) -> None:
    settings = folders.settings()
    assert settings.model is None
    assert settings.tool_output.lines_max == 2000
    assert settings.problems == ()


def test_each_layer_lies_over_the_one_before(folders: LocationFolders) -> None:
    inner = folders.project / "a" / "b"
    inner.mkdir(parents=True)
    steps: list[tuple[Path, str]] = [
        (folders.home / ".config/opencode/opencode.json", "user"),
        (folders.home / ".config/opencode/opencode.jsonc", "user-c"),
        (folders.project / "opencode.json", "root"),
        (folders.project / "opencode.jsonc", "root-c"),
        (folders.project / "a" / "opencode.json", "middle"),
        (inner / "opencode.json", "near"),
        (folders.project / ".opencode" / "opencode.json", "dot-root"),
        (inner / ".opencode" / "opencode.jsonc", "dot-near"),
    ]
    for path, name in steps:
        folders.write(path, model(name))
        assert folders.settings(inner).model == ModelRef(id=name, provider_id="p")
    folders.variables["OPENCODE_CONFIG"] = str(
        folders.write(folders.root / "extra.json", model("extra"))
    )
    assert folders.settings(inner).model == ModelRef(id="extra", provider_id="p")
    folders.variables["OPENCODE_CONFIG_CONTENT"] = '{"model": "p/inline", /* yes */}'
    assert folders.settings(inner).model == ModelRef(id="inline", provider_id="p")


def test_files_above_the_project_do_not_count(folders: LocationFolders) -> None:
    folders.write(folders.root / "opencode.json", model("above"))
    assert folders.settings().model is None


def test_outside_a_repository_directories_above_count_until_one_that_anybody_may_write(
    folders: LocationFolders,
) -> None:
    shared = folders.root / "shared"
    inner = shared / "mine" / "deep"
    inner.mkdir(parents=True)
    folders.write(shared / "mine" / "opencode.json", model("mine"))
    folders.write(shared / "opencode.json", {"model": "p/planted", "default_agent": "planted"})
    assert folders.settings(inner, root=Path("/")).default_agent == "planted"
    shared.chmod(0o1777)
    settings = folders.settings(inner, root=Path("/"))
    assert settings.model == ModelRef(id="mine", provider_id="p")
    assert settings.default_agent is None


def test_the_config_directory_itself_is_not_also_a_project(folders: LocationFolders) -> None:
    folders.configure_user({"permissions": [{"action": "a", "resource": "*", "effect": "ask"}]})
    settings = folders.settings(folders.home / ".config" / "opencode", root=Path("/"))
    assert len(settings.permissions.user) == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{"model": "p/x",\n "shell" "/bin/sh"}', 2),
        ("{", 1),
        ("", 1),
        ("\x00\x01", 1),
        ("[" * 100_000, 1),
    ],
)
def test_an_undecodable_file_is_ignored_whole_and_reported_with_its_line(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture, content: str, line: int
) -> None:
    folders.configure_user(model("kept"))
    path = folders.configure(content)
    with caplog.at_level(logging.WARNING):
        settings = folders.settings()
    assert settings.model == ModelRef(id="kept", provider_id="p")
    [problem] = settings.problems
    assert (problem.path, problem.line) == (str(path), line)
    assert str(path) in caplog.text


def test_a_file_that_is_too_large_is_ignored_and_reported(folders: LocationFolders) -> None:
    folders.configure('{"model": "p/x"}' + " " * (5 * 1024 * 1024))
    settings = folders.settings()
    assert settings.model is None
    assert "larger than" in settings.problems[0].message


def test_things_that_are_not_files_do_no_harm(folders: LocationFolders) -> None:
    (folders.project / "opencode.json").mkdir()
    os.mkfifo(folders.project / "opencode.jsonc")
    (folders.project / ".opencode").write_text("not a directory")
    assert folders.settings().model is None


def test_a_file_named_by_a_variable_that_is_not_there_is_reported(folders: LocationFolders) -> None:
    folders.variables["OPENCODE_CONFIG"] = "missing.json"
    [problem] = folders.settings().problems
    assert problem.path == str(folders.project / "missing.json")


def test_another_config_directory_can_be_named(folders: LocationFolders) -> None:
    folders.configure_user(model("default"))
    folders.write(folders.root / "other" / "opencode.json", model("other"))
    folders.variables["OPENCODE_CONFIG_DIR"] = str(folders.root / "other")
    assert folders.settings().model == ModelRef(id="other", provider_id="p")


def test_a_changed_file_is_seen_and_an_unchanged_one_is_not_read_again(
    folders: LocationFolders,
) -> None:
    path = folders.configure(model("one"))
    configuration = Configuration(folders.environment)

    def now() -> ModelRef | None:
        return configuration.load(str(folders.project), root=str(folders.project)).model

    assert now() == ModelRef(id="one", provider_id="p")
    folders.configure(model("two!"))
    assert now() == ModelRef(id="two!", provider_id="p")
    path.unlink()
    assert now() is None


def test_a_file_is_loaded_once_until_time_size_or_inode_change(tmp_path: Path) -> None:
    path = tmp_path / "file"
    loads: list[bytes] = []

    def load(name: str) -> bytes:
        loads.append(Path(name).read_bytes())
        return loads[-1]

    files = CachedFiles(load)
    assert files.get(str(path)) is None
    path.write_bytes(b"one")
    assert [files.get(str(path)), files.get(str(path))] == [b"one", b"one"]
    assert loads == [b"one"]
    # Replaced by a file of the same size and time: only the inode tells.
    stat = path.stat()
    other = tmp_path / "other"
    other.write_bytes(b"two")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)
    assert files.get(str(path)) == b"two"
