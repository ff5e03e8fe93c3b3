"""Parses shell text into values of core.shell.command.

Text of literal words alone is read by core.shell.literal. All other text is unclear; the grammar
then finds commands in it to show, and to deny by. It is an optional package, imported when it is
first needed. A shell with another syntax makes every text unclear.

Invariant: only what core.shell.literal has read is clear.
"""

from functools import cache
from importlib import import_module
from typing import Final

from perdure.core.shell import literal
from perdure.core.shell.command import Parse, Script

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})


def parse_script(shell: str, text: str) -> Script:
    """Parse `text` as a script of the program `shell`."""
    name = shell.rpartition("/")[2]
    if name not in _SHELLS:
        return Script(unclear=f"the syntax of {name} is not known here")
    script = literal.read(text)
    if script.unclear is None:
        return script
    return Script(_grammar()(text).items, script.unclear)


@cache
def _grammar() -> Parse:
    try:
        parse: Parse = import_module("perdure.tools.shell.grammar").parse
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tree_sitter"):
            raise
        return _without_grammar
    return parse


def _without_grammar(_text: str) -> Script:
    return Script()
