"""What people type: Sessions by prefix and `last`, files, piped text, models, agents."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.cli.command import MODEL, Installation, shown_until
from tests.skipping import is_not_for


def session_ids(installation: Installation) -> list[str]:
    listed = installation.perdure("sessions", "--format", "json").stdout
    return [json.loads(line)["id"] for line in listed.splitlines()]


def prompts(installation: Installation, session: str) -> list[str]:
    exported = json.loads(installation.perdure("export", session).stdout)
    return [message["text"] for message in exported["messages"] if message["type"] == "user"]


@pytest.mark.parametrize("option", [("-c",), ("--continue",), ("-s", "last")])
def test_the_last_session_of_the_directory_goes_on(
    installation: Installation, option: tuple[str, ...]
) -> None:
    installation.perdure("run", *MODEL, "hello")
    elsewhere = installation.project / "sub"
    elsewhere.mkdir()
    other = installation.perdure("run", *MODEL, "elsewhere", directory=elsewhere)
    assert other.returncode == 0, other.stderr
    ran = installation.perdure("run", *option, "list the files here")
    assert ran.returncode == 0, ran.stderr
    assert prompts(installation, "last") == ["hello", "list the files here"]


def test_a_session_that_changed_later_is_the_last_one(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "first")
    first = session_ids(installation)[0]
    installation.perdure("run", *MODEL, "second")
    installation.perdure("run", "-s", first, "again")
    assert prompts(installation, "last") == ["first", "again"]


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(
    installation: Installation,
) -> None:
    installation.perdure("run", *MODEL, "hello")
    (session,) = session_ids(installation)
    installation.perdure("fork", session, "--id", "ses_other")
    assert installation.perdure("rename", "ses_o", "Found").returncode == 0
    several = installation.perdure("rename", "ses_", "Found")
    assert several.returncode == 1
    assert "2 Sessions" in several.stderr
    absent = installation.perdure("rename", "ses_othre", "Found")
    assert absent.returncode == 1
    assert "did you mean ses_other?" in absent.stderr


def test_without_a_session_here_that_is_said(installation: Installation) -> None:
    told = installation.perdure("run", "-c", "hello")
    assert told.returncode == 1
    assert "there is no Session of" in told.stderr
    assert session_ids(installation) == []


def test_a_prompt_and_piped_text_are_one_prompt(installation: Installation) -> None:
    ran = installation.perdure("run", *MODEL, "list the files here", input="and this\n")
    assert ran.returncode == 0, ran.stderr
    assert prompts(installation, "last") == ["list the files here\n\nand this\n"]


def test_files_are_attached(installation: Installation) -> None:
    ran = installation.perdure("run", *MODEL, "-f", "one.txt", "hello")
    assert ran.returncode == 0, ran.stderr
    exported = json.loads(installation.perdure("export", "last").stdout)
    (message,) = [each for each in exported["messages"] if each["type"] == "user"]
    assert message["files"][0]["name"] == "one.txt"
    absent = installation.perdure("run", *MODEL, "-f", "absent.txt", "hello")
    assert absent.returncode == 1
    assert "absent.txt" in absent.stderr


def test_a_session_without_open_work_needs_a_prompt(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "hello")
    told = installation.perdure("run", "-c")
    assert told.returncode == 1
    assert "nothing to go on with" in told.stderr
    assert installation.perdure("run").returncode == 2


def test_models_and_agents_are_listed(installation: Installation) -> None:
    models = installation.perdure("models")
    assert models.returncode == 0, models.stderr
    assert "demo/demo" in models.stdout
    assert json.loads(installation.perdure("models", "demo", "--format", "json").stdout)
    absent = installation.perdure("models", "dem")
    assert absent.returncode == 1
    assert "did you mean demo?" in absent.stderr
    agents = installation.perdure("agents").stdout
    assert any(line.startswith("build ") for line in agents.splitlines())


def test_a_model_that_does_not_exist_is_answered_with_one_that_does(
    installation: Installation,
) -> None:
    ran = installation.perdure("run", "-m", "demo/dmeo", "hello")
    assert ran.returncode == 1
    assert "did you mean demo/demo?" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("failed: ")


def test_a_deletion_asks_and_does_nothing_without_an_answer(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "hello")
    refused = installation.perdure("delete", "last")
    assert refused.returncode == 1
    assert "--yes" in refused.stderr
    assert len(session_ids(installation)) == 1
    with installation.at_terminal("delete", "last") as process:
        assert "hello" in shown_until(process.terminal, "[N]o: ")
        process.answer("n\n")
    assert len(session_ids(installation)) == 1
    with installation.at_terminal("delete", "last") as process:
        assert "hello" in shown_until(process.terminal, "[N]o: ")
        assert "is deleted" in process.answer("y\n")
    assert session_ids(installation) == []


def test_times_are_those_of_the_user(installation: Installation) -> None:
    installation.perdure("run", *MODEL, "hello")
    zones = [
        # A variable of the interpreter makes it start anew, and read the time zone.
        installation.perdure("sessions", variables={"TZ": zone, "PYTHONUTF8": "1"}).stdout.split()[
            2
        ]
        for zone in ("UTC", "Asia/Kolkata")
    ]
    assert zones[0] != zones[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_every_command(installation: Installation, shell: str) -> None:
    script = installation.perdure("completion", shell)
    assert script.returncode == 0, script.stderr
    for word in ("sessions", "undo", "import", "permission-timeout"):
        assert word in script.stdout
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run(
            [program, "-n"], input=script.stdout, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("perdure", "se"), {"serve", "sessions", "search"}),
        (("perdure", "run", "--mod"), {"--model"}),
        (("perdure", "sessions", "--format", "j"), {"json"}),
        (("perdure", "completion", "fi"), {"fish"}),
    ],
)
def test_bash_completes_commands_options_and_values(
    installation: Installation, typed: tuple[str, ...], expected: set[str]
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = installation.perdure("completion", "bash").stdout
    words = " ".join(f"'{word}'" for word in typed)
    program = (
        f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _perdure;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        [bash, "-c", program], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert set(ran.stdout.split()) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("perdure se", {"serve", "sessions", "search"}),
        ("perdure run fix the show --mod", {"--model"}),
        ("perdure sessions --format ", {"text", "json"}),
    ],
)
def test_fish_completes_commands_options_and_values(
    installation: Installation, tmp_path: Path, typed: str, expected: set[str]
) -> None:
    fish = shutil.which("fish")
    if fish is None:
        is_not_for("fish is not installed")
    script = tmp_path / "perdure.fish"
    script.write_text(installation.perdure("completion", "fish").stdout)
    ran = subprocess.run(
        [fish, "--no-config", "-c", f"source {script}; complete -C '{typed}'"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.partition("\t")[0] for line in ran.stdout.splitlines()} == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("perdure comple", "perdure completion "),
        ("perdure run --mod", "perdure run --model "),
        ("perdure sessions --format j", "perdure sessions --format json "),
        ("perdure completion fi", "perdure completion fish "),
    ],
)
def test_zsh_completes_commands_options_and_values(
    installation: Installation, tmp_path: Path, typed: str, expected: str
) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        is_not_for("zsh is not installed")
    (tmp_path / "_perdure").write_text(installation.perdure("completion", "zsh").stdout)
    # A zsh inside a pseudo-terminal shows the line after Tab; Enter runs what prints it.
    program = f"""
        zmodload zsh/zpty
        zpty inner {zsh} -f -i
        zpty -w inner 'fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D'
        zpty -w inner 'perdure() {{ print -r -- "<<perdure $* >>" }}; print rea''dy'
        zpty -r inner seen '*ready*'
        zpty -w -n inner $'{typed}\t\n'
        zpty -r inner line '*<<*>>*'
        print -r -- $line
    """
    ran = subprocess.run(
        [zsh, "-f", "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert f"<<{expected}>>" in ran.stdout
