"""Configuration on disk: which files count, in which order, and what a bad one does."""

import logging
import os
from pathlib import Path

import pytest

from perdure.host.files.cached_files import CachedFiles
from perdure.location.config.config import Configuration
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import Place


def model(name: str) -> dict[str, str]:
    return {"model": f"p/{name}"}


def test_without_any_file_there_is_a_default_for_everything(place: Place) -> None:
    settings = place.settings()
    assert settings.model is None
    assert settings.tool_output.lines_max == 2000
    assert settings.problems == ()


def test_each_layer_lies_over_the_one_before(place: Place) -> None:
    inner = place.project / "a" / "b"
    inner.mkdir(parents=True)
    steps: list[tuple[Path, str]] = [
        (place.home / ".config/opencode/opencode.json", "user"),
        (place.home / ".config/opencode/opencode.jsonc", "user-c"),
        (place.project / "opencode.json", "root"),
        (place.project / "opencode.jsonc", "root-c"),
        (place.project / "a" / "opencode.json", "middle"),
        (inner / "opencode.json", "near"),
        (place.project / ".opencode" / "opencode.json", "dot-root"),
        (inner / ".opencode" / "opencode.jsonc", "dot-near"),
    ]
    for path, name in steps:
        place.write(path, model(name))
        assert place.settings(inner).model == ModelRef(id=name, provider_id="p")
    place.variables["OPENCODE_CONFIG"] = str(place.write(place.root / "extra.json", model("extra")))
    assert place.settings(inner).model == ModelRef(id="extra", provider_id="p")
    place.variables["OPENCODE_CONFIG_CONTENT"] = '{"model": "p/inline", /* yes */}'
    assert place.settings(inner).model == ModelRef(id="inline", provider_id="p")


def test_files_above_the_project_do_not_count(place: Place) -> None:
    place.write(place.root / "opencode.json", model("above"))
    assert place.settings().model is None


def test_outside_a_repository_directories_above_count_until_one_that_anybody_may_write(
    place: Place,
) -> None:
    shared = place.root / "shared"
    inner = shared / "mine" / "deep"
    inner.mkdir(parents=True)
    place.write(shared / "mine" / "opencode.json", model("mine"))
    place.write(shared / "opencode.json", {"model": "p/planted", "default_agent": "planted"})
    assert place.settings(inner, root=Path("/")).default_agent == "planted"
    shared.chmod(0o1777)
    settings = place.settings(inner, root=Path("/"))
    assert settings.model == ModelRef(id="mine", provider_id="p")
    assert settings.default_agent is None


def test_the_config_directory_itself_is_not_also_a_project(place: Place) -> None:
    place.configure_user({"permissions": [{"action": "a", "resource": "*", "effect": "ask"}]})
    settings = place.settings(place.home / ".config" / "opencode", root=Path("/"))
    assert len(settings.permissions) == 1


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
    place: Place, caplog: pytest.LogCaptureFixture, content: str, line: int
) -> None:
    place.configure_user(model("kept"))
    path = place.configure(content)
    with caplog.at_level(logging.WARNING):
        settings = place.settings()
    assert settings.model == ModelRef(id="kept", provider_id="p")
    [problem] = settings.problems
    assert (problem.path, problem.line) == (str(path), line)
    assert str(path) in caplog.text


def test_a_file_that_is_too_large_is_ignored_and_reported(place: Place) -> None:
    place.configure('{"model": "p/x"}' + " " * (5 * 1024 * 1024))
    settings = place.settings()
    assert settings.model is None
    assert "larger than" in settings.problems[0].message


def test_things_that_are_not_files_do_no_harm(place: Place) -> None:
    (place.project / "opencode.json").mkdir()
    os.mkfifo(place.project / "opencode.jsonc")
    (place.project / ".opencode").write_text("not a directory")
    assert place.settings().model is None


def test_a_file_named_by_a_variable_that_is_not_there_is_reported(place: Place) -> None:
    place.variables["OPENCODE_CONFIG"] = "missing.json"
    [problem] = place.settings().problems
    assert problem.path == str(place.project / "missing.json")


def test_another_config_directory_can_be_named(place: Place) -> None:
    place.configure_user(model("default"))
    place.write(place.root / "other" / "opencode.json", model("other"))
    place.variables["OPENCODE_CONFIG_DIR"] = str(place.root / "other")
    assert place.settings().model == ModelRef(id="other", provider_id="p")


def test_a_changed_file_is_seen_and_an_unchanged_one_is_not_read_again(place: Place) -> None:
    path = place.configure(model("one"))
    configuration = Configuration(place.environment)

    def now() -> ModelRef | None:
        return configuration.load(str(place.project), root=str(place.project)).model

    assert now() == ModelRef(id="one", provider_id="p")
    place.configure(model("two!"))
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
