"""`perdure mcp`: servers are added, listed and tested as a user would."""

import json
import sys
from pathlib import Path

import pytest

from tests.contract.cli.command import Installation
from tests.support.mcp import scripted_server


def configuration(installation: Installation) -> Path:
    return Path(installation.variables["HOME"]) / ".config" / "opencode" / "opencode.json"


def command(mode: str, tmp_path: Path) -> list[str]:
    return [sys.executable, scripted_server.__file__, mode, str(tmp_path / "journal")]


def test_a_server_is_added_listed_and_tested(installation: Installation, tmp_path: Path) -> None:
    empty = installation.perdure("mcp", "list")
    assert "no MCP server is configured here" in empty.stdout
    said = installation.perdure(
        "mcp", "add", "it", "--env", "A=b=c", "--", *command("sound", tmp_path)
    )
    assert said.returncode == 0, said.stderr
    written = json.loads(configuration(installation).read_text())
    assert written["mcp"]["it"]["environment"] == {"A": "b=c"}
    assert installation.perdure("mcp", "list").stdout == "it  waiting\n"
    # Listing starts nothing.
    assert not (tmp_path / "journal").exists()
    tested = installation.perdure("mcp", "test", "it")
    assert tested.returncode == 0, tested.stderr
    assert tested.stdout == "it  connected  3 tools\n  it_fail\n  it_picture\n  it_say\n"
    # What it offered is known from now on.
    listed = installation.perdure("mcp", "list", "--format", "json")
    assert json.loads(listed.stdout)[0]["tools"] == ["it_fail", "it_picture", "it_say"]


def test_a_server_that_does_not_start_is_told_with_the_reason(
    installation: Installation, tmp_path: Path
) -> None:
    installation.perdure("mcp", "add", "it", "--", *command("dead", tmp_path))
    tested = installation.perdure("mcp", "test", "it")
    assert tested.returncode == 1
    assert tested.stdout.startswith("it  failed  it ended")


def test_a_remote_server_is_added_beside_what_is_there(installation: Installation) -> None:
    path = configuration(installation)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"model": "p/m", "mcp": {"timeout": {"startup": 5}, "servers": {}}}))
    said = installation.perdure(
        "mcp", "add", "it", "--url", "https://a.example/mcp", "--header", "X-Team: core"
    )
    assert said.returncode == 0, said.stderr
    written = json.loads(path.read_text())
    assert written["model"] == "p/m"
    assert written["mcp"]["servers"]["it"] == {
        "type": "remote",
        "url": "https://a.example/mcp",
        "headers": {"X-Team": "core"},
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("it",), "either --url"),
        (("it", "--url", "https://a.example", "--", "x"), "either --url"),
        (("it", "--url", "ftp://a.example"), "not an address"),
        (("it", "--url", "https://a.example", "--env", "A=b"), "--env is for a program"),
        (("it", "--header", "A: b", "--", "x"), "--header is for a remote"),
        (("it", "--env", "A", "--", "x"), "is not written NAME=VALUE"),
        (("a\nb", "--", "x"), "printable"),
    ],
)
def test_what_cannot_be_used_is_not_written(
    arguments: tuple[str, ...], reason: str, installation: Installation
) -> None:
    said = installation.perdure("mcp", "add", *arguments)
    assert said.returncode == 1
    assert reason in said.stderr
    assert not configuration(installation).exists()


def test_a_file_with_comments_is_left_alone_and_the_text_to_add_is_shown(
    installation: Installation,
) -> None:
    path = configuration(installation)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{\n  // mine\n  "model": "p/m"\n}\n')
    said = installation.perdure("mcp", "add", "it", "--", "npx", "thing")
    assert said.returncode == 1
    assert '"npx"' in said.stderr
    assert "// mine" in path.read_text()
    twice = installation.perdure("mcp", "test", "nothing")
    assert twice.returncode == 1
    assert "MCP server not found: nothing" in twice.stderr
