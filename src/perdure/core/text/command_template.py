"""The template of a slash command: placeholders for arguments, and commands whose output it wants.

`$ARGUMENTS` is all of the arguments, `$1` to `$9` are single ones, and the highest of these that a
template has takes the rest. Without any placeholder the arguments follow the template. A shell
command between !` and ` stands for its output; it gets the arguments as its own `$1`, `$2` and
`$ARGUMENTS`, so that no argument can become a part of it.

Invariant: what an argument or an output holds is text, and is not read as a template again.
"""

from collections.abc import Sequence
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_ALL: Final = "$ARGUMENTS"
_PLACEHOLDER: Final = lazy_pattern(r"\$ARGUMENTS|\$([1-9])(?![0-9])|!`([^`\n]{1,4096})`")
_ARGUMENT: Final = lazy_pattern(r'"([^"]*)"|\'([^\']*)\'|(\S+)')


class ShellPart(Value):
    """A part of a template that stands for the output of a command."""

    command: str


def split_arguments(text: str) -> tuple[str, ...]:
    """The single arguments: words, or what quotes hold together."""
    return tuple(next(filter(None, found.groups()), "") for found in _ARGUMENT.finditer(text))


def fill(template: str, arguments: str) -> tuple[str | ShellPart, ...]:
    """The text of the prompt, with the commands whose output is to be put in."""
    single = split_arguments(arguments)
    numbers = [int(found[1]) for found in _PLACEHOLDER.finditer(template) if found[1]]
    highest = max(numbers, default=0)
    parts: list[str | ShellPart] = []
    place = 0
    for found in _PLACEHOLDER.finditer(template):
        parts.append(template[place : found.start()])
        place = found.end()
        if found[2]:
            parts.append(ShellPart(found[2]))
        elif found[1]:
            parts.append(_choose(single, int(found[1]), highest))
        else:
            parts.append(arguments)
    parts.append(template[place:])
    if not numbers and _ALL not in template and arguments.strip():
        parts.append(f"\n\n{arguments}")
    return tuple(part for part in parts if part)


def _choose(single: Sequence[str], number: int, highest: int) -> str:
    if number == highest:
        return " ".join(single[number - 1 :])
    return single[number - 1] if number <= len(single) else ""
