"""`perdure config`: the configuration in force here, where each key comes from, and what is wrong.

Looks only. Secrets are masked, and placeholders are shown as they were written.
"""

import json
import os
from collections.abc import Sequence

from perdure.cli import options, terminal
from perdure.cli.problem import FAILED_STATUS
from perdure.core.config_file.problem import Problem
from perdure.core.settings import origin as config_origin
from perdure.core.settings.origin import Origin
from perdure.core.settings.settings import Settings
from perdure.host.environment import Environment
from perdure.location.config.config import Configuration
from perdure.location.project import project


def main(argv: list[str]) -> int:
    parser = options.parser("config", "Show the configuration in force in this directory.")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args(argv)
    found = _settings(options.surroundings(given.data_dir), os.getcwd())
    show = _show_json if given.format == "json" else _show_text
    show(config_origin.list_origins(found), found.problems)
    return FAILED_STATUS if found.problems else 0


def _settings(surroundings: Environment, directory: str) -> Settings:
    return Configuration(surroundings).read(directory, root=project.find_root(directory))


def _show_json(origins: Sequence[Origin], problems: Sequence[Problem]) -> None:
    shown = {
        "settings": [
            {"key": o.key, "value": o.value, "path": o.path, "line": o.line} for o in origins
        ],
        "problems": [
            {"path": p.path, "line": p.line, "column": p.column, "message": p.message}
            for p in problems
        ],
    }
    terminal.say(terminal.as_json(shown, indent=2) + "\n")


def _show_text(origins: Sequence[Origin], problems: Sequence[Problem]) -> None:
    if not origins:
        terminal.say("nothing is configured here\n")
    for origin in origins:
        value = json.dumps(origin.value, ensure_ascii=False)
        place = origin.path if origin.line is None else f"{origin.path}:{origin.line}"
        terminal.say(
            f"{terminal.one_line(origin.key)} = {terminal.one_line(value)}\n"
            f"    {terminal.one_line(place)}\n"
        )
    for problem in problems:
        terminal.say(f"! {terminal.one_line(str(problem))}\n")
