"""`perdure config`: what is in force, where it comes from, what is wrong, and no secret."""

import json
from pathlib import Path

from perdure.schema.codec import JsonObject
from tests.contract.cli.command import Installation

CANARY = "canary-b19f"


def configure(installation: Installation, text: str) -> Path:
    path = installation.project / "opencode.json"
    path.write_text(text, encoding="utf-8")
    return path


def users(installation: Installation, text: str) -> Path:
    folder = installation.project.parent / "config"
    folder.mkdir()
    installation.variables["OPENCODE_CONFIG_DIR"] = str(folder)
    path = folder / "opencode.json"
    path.write_text(text, encoding="utf-8")
    return path


def shown(installation: Installation) -> JsonObject:
    return json.loads(installation.perdure("config", "--format", "json").stdout)


def test_every_key_is_shown_with_the_line_it_comes_from(installation: Installation) -> None:
    path = configure(installation, '{\n"model": "demo/demo",\n"agent": {"a": {"prompt": "Hi"}}}')
    told = installation.perdure("config")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        'agents.a.system = "Hi"',
        f"    {path}:3 (project)",
        'model = "demo/demo"',
        f"    {path}:2 (project)",
    ]
    [_, model] = shown(installation)["settings"]
    assert model == {
        "key": "model",
        "value": "demo/demo",
        "layer": "project",
        "path": str(path),
        "line": 2,
    }


def test_secrets_are_shown_by_where_they_come_from_only(installation: Installation) -> None:
    installation.variables["MY_KEY"] = CANARY
    (installation.project / "key").write_text(CANARY)
    text = {
        "providers": {
            "p": {
                "api": {"url": f"https://me:{CANARY}@h.example/v1", "settings": {"token": CANARY}},
                "request": {
                    "body": {"apiKey": "{env:MY_KEY}"},
                    "headers": {"x": CANARY, "y": f"{{file:{installation.project}/key}}"},
                },
            }
        },
        "model": "{env:MY_KEY}",
        "username": "{file:/nowhere}",
    }
    users(installation, json.dumps(text))
    for arguments in (("config",), ("config", "--format", "json")):
        told = installation.perdure(*arguments)
        assert told.returncode == 1
        assert CANARY not in told.stdout + told.stderr
        assert "{env:MY_KEY}" in told.stdout


def test_problems_are_told_with_line_and_column_and_change_the_status(
    installation: Installation,
) -> None:
    path = configure(installation, '{"model": "demo/demo",\n  "shell": "./evil"}')
    told = installation.perdure("config")
    assert told.returncode == 1
    assert f"! {path}:2:3: `shell` can only be set in your own configuration" in told.stdout
    [problem] = shown(installation)["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == (str(path), 2, 3)
    configure(installation, "{ broken")
    assert installation.perdure("config").returncode == 1


def test_control_characters_of_a_project_do_not_reach_the_terminal(
    installation: Installation,
) -> None:
    configure(installation, '{"username": "\\u001b]0;owned\\u0007x", "agents": {"\\u001b[2J": {}}}')
    assert "\x1b" not in installation.perdure("config").stdout
    assert "\x1b" not in installation.perdure("config", "--format", "json").stdout


def test_nothing_configured_is_said(installation: Installation) -> None:
    told = installation.perdure("config")
    assert (told.returncode, told.stdout) == (
        0,
        "nothing is configured here: there is no opencode.json; `perdure doctor` shows paths\n",
    )
    assert not installation.data_dir.exists()
