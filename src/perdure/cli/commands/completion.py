"""`perdure completion`: prints the script with which a shell completes commands and options."""

from importlib import import_module
from typing import Final

from perdure.cli import command_table, completion_script, options, terminal
from perdure.cli.completion_script import CommandWords

_EXAMPLES: Final = """\
perdure completion bash > ~/.local/share/bash-completion/completions/perdure
perdure completion zsh > ~/.zfunc/_perdure
perdure completion fish > ~/.config/fish/completions/perdure.fish
"""


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "completion",
        "Print the completion script of a shell, for the file in which the shell looks for it.",
        examples=_EXAMPLES,
    )
    parser.add_argument("shell", choices=tuple(completion_script.SHELLS), help="the shell")
    given = parser.parse_args(argv)
    terminal.print_output(completion_script.SHELLS[given.shell](_list_commands()))
    return 0


def _list_commands() -> list[CommandWords]:
    return [
        _describe(name, summary)
        for commands in command_table.GROUPS.values()
        for name, summary in commands.items()
    ]


def _describe(name: str, summary: str) -> CommandWords:
    module = command_table.find_module(name)
    assert module is not None
    parser = options.describe(import_module(module).main)
    return CommandWords(name, summary, tuple(parser.list_words()))
