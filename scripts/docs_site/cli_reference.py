"""The reference page of the command line: each command with its arguments, options and examples."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import cast

from perdure.cli import command_table, options
from perdure.cli.options import CommandParser
from scripts.docs_site.records import code, table_row

_INTRODUCTION = """# Commands and options

What `perdure COMMAND --help` prints, on one page. How Sessions are named, what is printed where,
and the exit statuses are in [the command line, in words](docs/cli.md).
"""


def write() -> str:
    return "\n".join([_INTRODUCTION, *_commands()])


def _commands() -> Iterator[str]:
    for group, commands in command_table.GROUPS.items():
        yield f"## {group}\n"
        for name in commands:
            module = command_table.find_module(name)
            assert module is not None
            yield f"### `perdure {name}`\n"
            yield from _command(options.describe(import_module(module).main))


def _command(parser: CommandParser) -> Iterator[str]:
    yield f"{parser.description}\n"
    for name, part in _parts(parser.actions):
        yield f"**{name}**: {part.description or ''}\n"
        yield from _table(part.actions if isinstance(part, CommandParser) else ())
    yield from _table(parser.actions)
    if parser.epilog:
        heading, _, examples = parser.epilog.partition("\n")
        yield f"{heading.capitalize()}\n"
        yield f"```text\n{_unindent(examples)}\n```\n"


def _parts(actions: Iterable[argparse.Action]) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The actions of a command such as `perdure mcp`, by name."""
    for action in actions:
        choices = cast("object", action.choices)
        if isinstance(choices, Mapping):
            for name, part in cast("Mapping[str, object]", choices).items():
                if isinstance(part, argparse.ArgumentParser):
                    yield name, part


def _table(actions: Iterable[argparse.Action]) -> Iterator[str]:
    rows = [_row(action) for action in actions if action.dest != "help" and action.help]
    if rows:
        yield table_row("argument", "")
        yield "|---|---|"
        yield from rows
        yield ""


def _row(action: argparse.Action) -> str:
    value = _value(action)
    spelled = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    return table_row(", ".join(map(code, spelled)), (action.help or "").replace("%%", "%"))


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper()


def _unindent(examples: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in examples.rstrip().splitlines())
