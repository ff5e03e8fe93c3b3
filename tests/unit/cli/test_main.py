"""The list of commands: every module of `cli.commands` is in it, and every entry has help."""

import pkgutil
import re

import pytest

from perdure.cli import commands, main

MODULES = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
ENTRY = re.compile(r"^  ([a-z]+) +([A-Z])", re.MULTILINE)


def test_the_help_lists_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    listed = [name for name, _ in ENTRY.findall(capsys.readouterr().out)]
    assert sorted(listed) == MODULES


@pytest.mark.parametrize("name", MODULES)
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
