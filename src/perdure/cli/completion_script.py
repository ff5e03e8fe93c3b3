"""Completion scripts of bash, zsh and fish, made from the parsers of the commands.

A script holds all words, so that completing starts no process.
"""

from collections.abc import Callable, Sequence
from typing import Final

from perdure.schema.value import Value


class OptionWords(Value):
    """An option of a command, or a word that an argument of it takes."""

    names: tuple[str, ...]
    help: str
    takes_value: bool = False
    values: tuple[str, ...] = ()


class CommandWords(Value):
    """A command, what it does, and its options."""

    name: str
    summary: str
    words: tuple[OptionWords, ...]


def make_bash(commands: Sequence[CommandWords]) -> str:
    """The script for bash."""
    names = " ".join(command.name for command in commands)
    cases = "\n".join(
        f"        {command.name}) words={_quote(' '.join(_all_words(command)))} ;;"
        for command in commands
    )
    values = "\n".join(
        f"        {command.name}:{name}) words={_quote(' '.join(option.values))} ;;"
        for command in commands
        for option in command.words
        for name in option.names
        if option.takes_value and option.values
    )
    return f"""# Completes `perdure` in bash.
_perdure() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}:$previous" in
{values}
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _perdure perdure
"""


def make_zsh(commands: Sequence[CommandWords]) -> str:
    """The script for zsh."""
    names = "\n".join(
        f"        {_quote(f'{command.name}:{_without_colons(command.summary)}')}"
        for command in commands
    )
    values = "\n".join(
        f"        {command.name}:{name}) values=({' '.join(map(_quote, option.values))}) ;;"
        for command in commands
        for option in command.words
        for name in option.names
        if option.takes_value and option.values
    )
    cases = "\n".join(
        f"        {command.name}) options=({_describe_options(command)})"
        f" arguments=({_describe_arguments(command)}) ;;"
        for command in commands
    )
    return f"""#compdef perdure
# Completes `perdure` in zsh.
_perdure() {{
    local -a commands
    commands=(
{names}
    )
    if (( CURRENT == 2 )); then
        _describe 'command' commands
        return
    fi
    local command="${{words[2]}}"
    local -a options values arguments
    case "$command:${{words[CURRENT-1]}}" in
{values}
    esac
    if (( $#values )); then
        _describe 'value' values
        return
    fi
    case "$command" in
{cases}
    esac
    if [[ "$PREFIX" == -* ]]; then
        _describe -o 'option' options
    elif (( $#arguments )); then
        _describe 'argument' arguments
    else
        _files
    fi
}}
_perdure "$@"
"""


def make_fish(commands: Sequence[CommandWords]) -> str:
    """The script for fish."""
    lines = [_FISH_HEAD]
    for command in commands:
        lines.append(
            "complete -c perdure -n __perdure_has_no_command -f"
            f" -a {command.name} -d {_quote(command.summary)}"
        )
        within = f"complete -c perdure -n '__perdure_command_is {command.name}'"
        lines += [f"{within}{_fish_words(it)} -d {_quote(it.help)}" for it in command.words]
    return "\n".join(lines) + "\n"


_FISH_HEAD: Final = """\
# Completes `perdure` in fish.
function __perdure_has_no_command
    test (count (commandline -opc)) -eq 1
end
function __perdure_command_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
complete -c perdure -n __perdure_has_no_command -f"""

SHELLS: Final[dict[str, Callable[[Sequence[CommandWords]], str]]] = {
    "bash": make_bash,
    "zsh": make_zsh,
    "fish": make_fish,
}


def _all_words(command: CommandWords) -> list[str]:
    return [word for option in command.words for word in (option.names or option.values)]


def _describe_options(command: CommandWords) -> str:
    return " ".join(
        _quote(f"{name}:{_without_colons(option.help)}")
        for option in command.words
        for name in option.names
    )


def _describe_arguments(command: CommandWords) -> str:
    return " ".join(
        _quote(word) for option in command.words if not option.names for word in option.values
    )


def _fish_words(option: OptionWords) -> str:
    values = f" -a {_quote(' '.join(option.values))}" if option.values else ""
    if not option.names:
        return f" -f{values}"
    names = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names
    )
    needs = " -r" if option.takes_value else ""
    return f"{names}{needs}{' -f' if option.values else ''}{values}"


def _without_colons(text: str) -> str:
    return text.replace(":", " -")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
