"""Documents on disk: placeholders, what they may reach, and files that misbehave."""

import logging
import os
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.location.config.config import Configuration
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import Place

CANARY = "canary-51c2"


def with_key(text: str) -> JsonObject:
    return {"providers": {"p": {"request": {"body": {"apiKey": text}}}}}


def system_of(place: Place, name: str = "a") -> object:
    return dict(place.settings().agents)[name].system


def with_system(text: str) -> JsonObject:
    return {"agents": {"a": {"system": text}}}


def test_the_users_documents_take_keys_from_variables_and_files(place: Place) -> None:
    place.variables["MY_KEY"] = CANARY
    place.write(place.home / "secret", f"\n  {CANARY} \n")
    place.write(place.home / ".config/opencode/near", CANARY)
    for text in ("{env:MY_KEY}", "{file:~/secret}", "{file:near}", f"{{file:{place.home}/secret}}"):
        place.configure_user(with_key(text))
        request = place.settings().providers["p"].request
        assert request
        assert request.body == {"apiKey": CANARY}
        assert place.settings().problems == ()


def test_a_variable_that_is_not_set_is_empty(place: Place) -> None:
    place.configure_user({"username": "{env:NOT_SET}", "model": "p/{env:NOT_SET}m"})
    assert place.settings().model == ModelRef(id="m", provider_id="p")
    assert place.settings().problems == ()


def test_a_changed_file_that_is_put_in_is_seen_at_the_next_look(place: Place) -> None:
    secret = place.home / "secret"
    place.configure_user({"default_agent": "{file:~/secret}"})
    configuration = Configuration(place.environment)
    root = str(place.project)
    missing = configuration.load(root, root=root)
    assert missing.default_agent is None
    secret.write_text("plan")
    there = configuration.load(root, root=root, before=missing)
    assert there.default_agent == "plan"
    assert configuration.load(root, root=root, before=there) is there
    secret.write_text("builder")
    assert configuration.load(root, root=root, before=there).default_agent == "builder"


def test_a_project_reads_files_below_its_directory_only(place: Place) -> None:
    place.write(place.project / "prompts" / "a.md", "Be kind.\n")
    place.write(place.home / "secret", CANARY)
    place.write(place.root / "project-sibling" / "secret", CANARY)
    (place.project / "link").symlink_to(place.home / "secret")
    (place.project / "folder").symlink_to(place.home)
    place.configure(with_system("{file:./prompts/a.md}"))
    assert system_of(place) == "Be kind."
    for text in (
        "{file:~/secret}",
        "{file:../home/secret}",
        "{file:../project-sibling/secret}",
        f"{{file:{place.home}/secret}}",
        "{file:link}",
        "{file:folder/secret}",
        "{file:prompts/../link}",
    ):
        place.configure(with_system(text))
        settings = place.settings()
        assert CANARY not in repr(settings.agents)
        assert "lies outside of the project's directory" in settings.problems[0].message


def test_a_config_directory_of_a_project_reads_beside_itself_too(place: Place) -> None:
    place.write(place.project / "docs" / "a.md", "From docs.")
    place.write(place.project / ".opencode" / "opencode.json", with_system("{file:../docs/a.md}"))
    assert system_of(place) == "From docs."
    outside = place.project / "inner"
    place.write(outside / ".opencode" / "opencode.json", with_system("{file:../../docs/a.md}"))
    settings = place.settings(outside)
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
    place: Place, name: str, reason: str
) -> None:
    base = place.home / ".config" / "opencode"
    base.mkdir(parents=True)
    (base / "folder").mkdir()
    os.mkfifo(base / "pipe")
    (base / "loop").symlink_to(base / "loop")
    (base / "binary").write_bytes(b"\xff\xfe" + CANARY.encode())
    (base / "large").write_text(CANARY + "x" * limits.CONFIG_FILE_BYTES_MAX)
    place.configure_user(f'{{"model": "p/m",\n "username": "{{file:{name}}}"}}')
    settings = place.settings()
    assert settings.model == ModelRef(id="m", provider_id="p")
    [problem] = settings.problems
    assert reason in problem.message
    assert (problem.line, problem.column) == (2, 2)
    assert CANARY not in str(problem)


def test_a_relative_file_named_by_a_variable_is_trusted_like_a_project(place: Place) -> None:
    place.variables |= {"OPENCODE_CONFIG": "extra.json", "MY_KEY": CANARY}
    place.write(place.project / "extra.json", {"shell": "./evil", "username": "{env:MY_KEY}"})
    settings = place.settings()
    assert settings.shell is None
    assert len(settings.problems) == 2
    place.variables["OPENCODE_CONFIG"] = str(place.project / "extra.json")
    assert place.settings().shell == "./evil"


def test_the_text_of_a_variable_may_use_placeholders(place: Place) -> None:
    place.write(place.project / "agent.txt", "plan")
    place.variables["OPENCODE_CONFIG_CONTENT"] = '{"default_agent": "{file:agent.txt}"}'
    assert place.settings().default_agent == "plan"


@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
def test_nothing_of_a_project_is_read_when_that_is_disabled(place: Place, value: str) -> None:
    place.configure_user({"model": "p/mine"})
    place.configure({"model": "p/theirs"})
    place.write(place.project / ".opencode" / "opencode.json", {"default_agent": "theirs"})
    place.write(place.project / ".opencode" / "agents" / "theirs.md", "Theirs.")
    place.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = value
    settings = place.settings()
    assert settings.model == ModelRef(id="mine", provider_id="p")
    assert (settings.default_agent, settings.agents) == (None, ())
    place.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = "0"
    assert place.settings().default_agent == "theirs"


def test_a_problem_names_line_and_column(place: Place) -> None:
    path = place.configure(
        '\ufeff{\n  // what follows is wrong\n  "agent": {"a":\n    {"maxSteps": 0}}\n}'
    )
    [problem] = place.settings().problems
    assert str(problem).startswith(f"{path}:4:6: `agents.a.steps` is ignored")


def test_of_a_key_that_is_given_twice_the_last_counts(place: Place) -> None:
    place.configure('{"model": "p/one",\n"model": 3}')
    settings = place.settings()
    assert settings.model is None
    assert settings.problems[0].line == 2


def test_a_file_that_is_nested_too_deep_is_ignored(place: Place) -> None:
    place.configure('{"a":' * 500 + "1" + "}" * 500)
    [problem] = place.settings().problems
    assert "nested deeper" in problem.message


def test_a_loop_of_links_and_a_binary_file_do_no_harm(place: Place) -> None:
    (place.project / "opencode.json").symlink_to(place.project / "opencode.json")
    (place.project / "opencode.jsonc").write_bytes(bytes(range(256)))
    settings = place.settings()
    assert [problem.path for problem in settings.problems] == [
        str(place.project / "opencode.jsonc")
    ]


def test_an_unknown_time_zone_is_reported(place: Place) -> None:
    place.configure({"experimental": {"timezone": "Asia/Tokyo"}})
    assert place.settings().timezone == "Asia/Tokyo"
    for name in ("Nowhere/Land", "../etc/passwd", "Asia", ""):
        place.configure({"experimental": {"timezone": name}})
        assert place.settings().timezone is None
        assert len(place.settings().problems) == (1 if name else 0)


def test_instructions_know_where_they_were_written(place: Place) -> None:
    place.configure_user({"instructions": ["mine.md"]})
    place.configure({"instructions": ["docs/*.md"]})
    found = [(entry.text, entry.directory, entry.trust) for entry in place.settings().instructions]
    assert found == [
        ("mine.md", str(place.home / ".config" / "opencode"), "user"),
        ("docs/*.md", str(place.project), "project"),
    ]


def test_a_problem_is_logged_once_for_each_change(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    inner = place.project / "inner"
    inner.mkdir()
    place.configure({"model": 1})
    configuration, root = Configuration(place.environment), str(place.project)
    with caplog.at_level(logging.WARNING):
        first = configuration.load(root, root=root)
        configuration.load(str(inner), root=root)
        configuration.load(root, root=root, before=first)
        assert len(caplog.records) == 1
        place.configure({"model": "p/right"})
        second = configuration.load(root, root=root, before=first)
        assert (len(caplog.records), second.problems) == (1, ())


def test_a_file_that_vanishes_between_the_looks_is_as_if_never_there(
    place: Place, tmp_path: Path
) -> None:
    path = place.configure({"model": "p/m"})
    configuration, root = Configuration(place.environment), str(place.project)
    before = configuration.load(root, root=root)
    path.rename(tmp_path / "elsewhere")
    (place.project / "opencode.json").symlink_to(tmp_path / "nowhere")
    after = configuration.load(root, root=root, before=before)
    assert (after.model, after.problems) == (None, ())
