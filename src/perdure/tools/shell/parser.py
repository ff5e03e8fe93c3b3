"""Parses shell text into values of core.shell.command.

The grammar is an optional package, imported when a command is first parsed. Without it, and for a
shell with another syntax, every text is unclear, so the user is asked.
"""

from functools import cache
from importlib import import_module
from typing import Final

from perdure.core.shell.command import Parse, Script

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})


def parse_script(shell: str, text: str) -> Script:
    """Parse `text` as a script of the program `shell`."""
    name = shell.rpartition("/")[2]
    if name not in _SHELLS:
        return Script(unclear=f"the syntax of {name} is not known here")
    return _grammar()(text)


@cache
def _grammar() -> Parse:
    try:
        parse: Parse = import_module("perdure.tools.shell.grammar").parse
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tree_sitter"):
            raise
        return _without_grammar
    return parse


def _without_grammar(text: str) -> Script:
    return Script(unclear="the shell grammar is not installed (perdure[tools])")
