"""`perdure config`: shows the configuration of a directory, its sources and its problems.

Reads only. Secrets are masked, and placeholders are shown as written.
"""

import json
import os
from collections.abc import Sequence
from importlib import import_module

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
    if argv[:1] == ["permissions"]:
        # Imported late: it opens the data directory, which the configuration does not need.
        return import_module("perdure.cli.permission_list").main(argv[1:])
    parser = options.make_parser(
        "config",
        "Show the configuration of this directory, the file and line of each key, and problems.\n"
        "`perdure config permissions` shows and removes what you allowed for good.",
        examples="perdure config\nperdure config --format json\nperdure config permissions",
    )
    options.add_format(parser)
    given = parser.parse_args(argv)
    found = _read_settings(options.read_environment(given.data_dir), os.getcwd())
    show = _show_json if given.format == "json" else _show_text
    show(config_origin.list_origins(found), found.problems)
    return FAILED_STATUS if found.problems else 0


def _read_settings(environment: Environment, directory: str) -> Settings:
    return Configuration(environment).read(directory, root=project.find_root(directory))


def _show_json(origins: Sequence[Origin], problems: Sequence[Problem]) -> None:
    shown = {
        "settings": [
            {"key": o.key, "value": o.value, "layer": o.layer, "path": o.path, "line": o.line}
            for o in origins
        ],
        "problems": [
            {"path": p.path, "line": p.line, "column": p.column, "message": p.shown}
            for p in problems
        ],
    }
    terminal.print_output(terminal.as_json(shown, indent=2) + "\n")


def _show_text(origins: Sequence[Origin], problems: Sequence[Problem]) -> None:
    if not origins:
        terminal.print_output(
            "nothing is configured here: there is no opencode.json; `perdure doctor` shows paths\n"
        )
    for origin in origins:
        value = json.dumps(origin.value, ensure_ascii=False)
        source = origin.path if origin.line is None else f"{origin.path}:{origin.line}"
        terminal.print_output(
            f"{terminal.one_line(origin.key)} = {terminal.one_line(value)}\n"
            f"    {terminal.one_line(source)} ({origin.layer})\n"
        )
    for problem in problems:
        terminal.print_output(f"! {terminal.one_line(str(problem))}\n")
