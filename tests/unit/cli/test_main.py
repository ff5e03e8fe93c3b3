"""The list of commands: every module of `cli.commands` is in it, and every entry has help."""

import pkgutil
import re
from importlib import import_module

import pytest

from perdure.cli import command_table, commands, main, options

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}.")
    if not module.ispkg and hasattr(import_module(module.name), "main")
)
NAMES = sorted(command_table.list_names())
ENTRY = re.compile(r"^  ([a-z-]+) +([A-Z])", re.MULTILINE)


def test_the_help_lists_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    listed = [name for name, _ in ENTRY.findall(capsys.readouterr().out)]
    assert sorted(listed) == NAMES
    assert sorted(str(command_table.find_module(name)) for name in NAMES) == MODULES


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_has_a_sentence_and_examples(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert re.search(r"^[A-Z][a-z]+[ ,]", told, re.MULTILINE)
    assert f"examples:\n  perdure {name}" in told


def test_windows_is_refused_with_a_way_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as on_windows:
        on_windows.setattr("perdure.cli.main.os.name", "nt")
        status = main.main(["--version"])
    assert status == 1
    told = capsys.readouterr().err
    assert "does not run on Windows" in told
    assert "wsl --install" in told


@pytest.mark.parametrize("name", NAMES)
def test_the_help_explains_every_option_and_argument(name: str) -> None:
    module = command_table.find_module(name)
    assert module is not None
    parser = options.describe(import_module(module).main)
    unexplained = [action.dest for action in parser.actions if not action.help]
    assert unexplained == []


@pytest.mark.parametrize("asked", [["help", "fork"], ["--help", "fork"], ["fork", "-h"]])
def test_help_can_be_asked_for_in_every_order(
    capsys: pytest.CaptureFixture[str], asked: list[str]
) -> None:
    with pytest.raises(SystemExit):
        main.main(asked)
    assert "perdure fork" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["sesions"], "sessions"),
        (["RUN"], "run"),
        (["modles"], "models"),
        (["run", "--modle", "a/b", "hi"], "--model"),
        (["run", "--modle=a/b", "hi"], "--model"),
        (["sessions", "--format", "jsn"], "json"),
        (["completion", "bsh"], "bash"),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], typed: list[str], meant: str
) -> None:
    try:
        status = main.main(typed)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_word_like_no_command_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["\x1b[2Jxyzzy"]) == 2
    told = capsys.readouterr().err
    assert "did you mean" not in told
    assert "\x1b" not in told
