"""Documents on disk: placeholders, what they may reach, and files that misbehave."""

import logging
import os
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.location.config.config import Configuration
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders

CANARY = "canary-51c2"


def with_key(text: str) -> JsonObject:
    return {"providers": {"p": {"request": {"body": {"apiKey": text}}}}}


def system_of(folders: LocationFolders, name: str = "a") -> object:
    return {each.name: each.entry for each in folders.settings().agents}[name].system


def with_system(text: str) -> JsonObject:
    return {"agents": {"a": {"system": text}}}


def test_the_users_documents_take_keys_from_variables_and_files(folders: LocationFolders) -> None:
    folders.variables["MY_KEY"] = CANARY
    folders.write(folders.home / "secret", f"\n  {CANARY} \n")
    folders.write(folders.home / ".config/opencode/near", CANARY)
    for text in (
        "{env:MY_KEY}",
        "{file:~/secret}",
        "{file:near}",
        f"{{file:{folders.home}/secret}}",
    ):
        folders.configure_user(with_key(text))
        request = folders.settings().providers["p"].request
        assert request
        assert request.body == {"apiKey": CANARY}
        assert folders.settings().problems == ()


def test_a_variable_that_is_not_set_is_empty(folders: LocationFolders) -> None:
    folders.configure_user({"username": "{env:NOT_SET}", "model": "p/{env:NOT_SET}m"})
    assert folders.settings().model == ModelRef(id="m", provider_id="p")
    assert folders.settings().problems == ()


def test_a_changed_file_that_is_put_in_is_seen_at_the_next_look(folders: LocationFolders) -> None:
    secret = folders.home / "secret"
    folders.configure_user({"default_agent": "{file:~/secret}"})
    configuration = Configuration(folders.environment)
    root = str(folders.project)
    missing = configuration.load(root, root=root)
    assert missing.default_agent is None
    secret.write_text("plan")
    there = configuration.load(root, root=root, before=missing)
    assert there.default_agent == "plan"
    assert configuration.load(root, root=root, before=there) is there
    secret.write_text("builder")
    assert configuration.load(root, root=root, before=there).default_agent == "builder"


def test_a_project_reads_files_below_its_directory_only(folders: LocationFolders) -> None:
    folders.write(folders.project / "prompts" / "a.md", "Be kind.\n")
    folders.write(folders.home / "secret", CANARY)
    folders.write(folders.root / "project-sibling" / "secret", CANARY)
    (folders.project / "link").symlink_to(folders.home / "secret")
    (folders.project / "folder").symlink_to(folders.home)
    folders.configure(with_system("{file:./prompts/a.md}"))
    assert system_of(folders) == "Be kind."
    for text in (
        "{file:~/secret}",
        "{file:../home/secret}",
        "{file:../project-sibling/secret}",
        f"{{file:{folders.home}/secret}}",
        "{file:link}",
        "{file:folder/secret}",
        "{file:prompts/../link}",
    ):
        folders.configure(with_system(text))
        settings = folders.settings()
        assert CANARY not in repr(settings.agents)
        assert "lies outside of the project's directory" in settings.problems[0].message


def test_a_config_directory_of_a_project_reads_beside_itself_too(folders: LocationFolders) -> None:
    folders.write(folders.project / "docs" / "a.md", "From docs.")
    folders.write(
        folders.project / ".opencode" / "opencode.json", with_system("{file:../docs/a.md}")
    )
    assert system_of(folders) == "From docs."
    outside = folders.project / "inner"
    folders.write(outside / ".opencode" / "opencode.json", with_system("{file:../../docs/a.md}"))
    settings = folders.settings(outside)
    assert len(settings.problems) == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone", "is not a file"),
        ("folder", "is not a file"),
        ("pipe", "is not a file"),
        ("loop", "cannot be read"),
        ("binary", "is not UTF-8 text"),
        ("large", "is larger than"),
        ("nul\\u0000byte", "is not a path"),
        ("x" * 5000, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_put_in_leaves_out_its_key(
    folders: LocationFolders, name: str, reason: str
) -> None:
    base = folders.home / ".config" / "opencode"
    base.mkdir(parents=True)
    (base / "folder").mkdir()
    os.mkfifo(base / "pipe")
    (base / "loop").symlink_to(base / "loop")
    (base / "binary").write_bytes(b"\xff\xfe" + CANARY.encode())
    (base / "large").write_text(CANARY + "x" * limits.CONFIG_FILE_BYTES_MAX)
    folders.configure_user(f'{{"model": "p/m",\n "username": "{{file:{name}}}"}}')
    settings = folders.settings()
    assert settings.model == ModelRef(id="m", provider_id="p")
    [problem] = settings.problems
    assert reason in problem.message
    assert (problem.line, problem.column) == (2, 2)
    assert CANARY not in str(problem)


def test_a_relative_file_named_by_a_variable_is_trusted_like_a_project(
    folders: LocationFolders,
) -> None:
    folders.variables |= {"OPENCODE_CONFIG": "extra.json", "MY_KEY": CANARY}
    folders.write(folders.project / "extra.json", {"shell": "./evil", "username": "{env:MY_KEY}"})
    settings = folders.settings()
    assert settings.shell is None
    assert len(settings.problems) == 2
    folders.variables["OPENCODE_CONFIG"] = str(folders.project / "extra.json")
    assert folders.settings().shell == "./evil"


def test_the_text_of_a_variable_may_use_placeholders(folders: LocationFolders) -> None:
    folders.write(folders.project / "agent.txt", "plan")
    folders.variables["OPENCODE_CONFIG_CONTENT"] = '{"default_agent": "{file:agent.txt}"}'
    assert folders.settings().default_agent == "plan"


@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
def test_nothing_of_a_project_is_read_when_that_is_disabled(
    folders: LocationFolders, value: str
) -> None:
    folders.configure_user({"model": "p/mine"})
    folders.configure({"model": "p/theirs"})
    folders.write(folders.project / ".opencode" / "opencode.json", {"default_agent": "theirs"})
    folders.write(folders.project / ".opencode" / "agents" / "theirs.md", "Theirs.")
    folders.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
    settings = folders.settings()
    assert settings.model == ModelRef(id="mine", provider_id="p")
    assert (settings.default_agent, settings.agents) == (None, ())
    folders.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = "0"
    assert folders.settings().default_agent == "theirs"


def test_a_problem_names_line_and_column(folders: LocationFolders) -> None:
    path = folders.configure(
        '\ufeff{\n  // what follows is wrong\n  "agent": {"a":\n    {"maxSteps": 0}}\n}'
    )
    [problem] = folders.settings().problems
    assert str(problem).startswith(f"{path}:4:6: `agents.a.steps` is ignored")


def test_of_a_key_that_is_given_twice_the_last_counts(folders: LocationFolders) -> None:
    folders.configure('{"model": "p/one",\n"model": 3}')
    settings = folders.settings()
    assert settings.model is None
    assert settings.problems[0].line == 2


def test_a_file_that_is_nested_too_deep_is_ignored(folders: LocationFolders) -> None:
    folders.configure('{"a":' * 500 + "1" + "}" * 500)
    [problem] = folders.settings().problems
    assert "nested more than" in problem.message


def test_a_loop_of_links_and_a_binary_file_do_no_harm(folders: LocationFolders) -> None:
    (folders.project / "opencode.json").symlink_to(folders.project / "opencode.json")
    (folders.project / "opencode.jsonc").write_bytes(bytes(range(256)))
    settings = folders.settings()
    assert [problem.path for problem in settings.problems] == [
        str(folders.project / "opencode.json"),
        str(folders.project / "opencode.jsonc"),
    ]


def test_an_unknown_time_zone_is_reported(folders: LocationFolders) -> None:
    folders.configure({"experimental": {"timezone": "Asia/Tokyo"}})
    assert folders.settings().timezone == "Asia/Tokyo"
    for name in ("Nowhere/Land", "../etc/passwd", "Asia", ""):
        folders.configure({"experimental": {"timezone": name}})
        assert folders.settings().timezone is None
        assert len(folders.settings().problems) == (1 if name else 0)


def test_instructions_know_where_they_were_written(folders: LocationFolders) -> None:
    folders.configure_user({"instructions": ["mine.md"]})
    folders.configure({"instructions": ["docs/*.md"]})
    found = [
        (entry.text, entry.directory, entry.trust) for entry in folders.settings().instructions
    ]
    assert found == [
        ("mine.md", str(folders.home / ".config" / "opencode"), "user"),
        ("docs/*.md", str(folders.project), "project"),
    ]


def test_a_problem_is_logged_once_for_each_change(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture
) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    folders.configure({"model": 1})
    configuration, root = Configuration(folders.environment), str(folders.project)
    with caplog.at_level(logging.WARNING):
        first = configuration.load(root, root=root)
        configuration.load(str(inner), root=root)
        configuration.load(root, root=root, before=first)
        assert len(caplog.records) == 1
        folders.configure({"model": "p/right"})
        second = configuration.load(root, root=root, before=first)
        assert (len(caplog.records), second.problems) == (1, ())


def test_a_file_that_vanishes_between_the_looks_is_as_if_never_there(
    folders: LocationFolders, tmp_path: Path
) -> None:
    path = folders.configure({"model": "p/m"})
    configuration, root = Configuration(folders.environment), str(folders.project)
    before = configuration.load(root, root=root)
    path.rename(tmp_path / "elsewhere")
    (folders.project / "opencode.json").symlink_to(tmp_path / "nowhere")
    after = configuration.load(root, root=root, before=before)
    assert (after.model, after.problems) == (None, ())
