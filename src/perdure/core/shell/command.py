"""What a shell command would run, part by part, as permission rules see it.

Every simple command counts wherever it stands, and so does each variable that is set and each file
that is written to: any of them can change what the others do. Programs that run other programs are
looked through (core.shell.wrapper). What "always" would save for a part is in
core.shell.approval_pattern. Parsing is not done here. This is a convenience for people and no
sandbox: a program that is allowed may do anything.

Invariant: what is not understood is said to be unclear; nothing is ever left out silently.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import field

from perdure.core.files.paths import is_within
from perdure.core.limits import COMMAND_CHARS_MAX, COMMAND_DEPTH_MAX, COMMAND_PARTS_MAX
from perdure.core.shell import approval_pattern, wrapper
from perdure.core.shell.word import Word, render_words
from perdure.schema.value import State, Value

_DIRECTORY_CHANGES: Final = frozenset({"cd", "pushd"})
_HARMLESS_TARGETS: Final = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero"}
)
_RESERVED: Final = frozenset(
    {"{", "}", "!", "[[", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function"}
    | {"if", "in", "select", "then", "until", "while"}
)
_DESCRIPTOR: Final = re.compile(r"[0-9]*-?")


class SimpleCommand(Value):
    """A program or built-in with its arguments. Its first word names it."""

    words: tuple[Word, ...]


class Assignment(Value):
    """Sets variables: `A=1`, `export A=1`, `for A in ...`, `unset A`."""

    source: str


class Redirection(Value):
    operator: str
    target: Word


class Script(Value):
    """A parsed text: what stands in it, in order, and why some of it is not known."""

    items: tuple[SimpleCommand | Assignment | Redirection, ...] = ()
    unclear: str | None = None


Parse = Callable[[str], Script]


class Part(Value, kw_only=True):
    """One thing that a command does, and that a rule must allow."""

    text: str
    """In one spelling, however it was quoted."""
    pattern: str | None = None
    """What a person approves with "always"; None: it is never approved for good."""
    spellings: tuple[str, ...] = ()
    """Other forms that a rule may deny it by."""
    outside: bool = False
    """Whether it reaches for a file outside the Location."""


class Review(Value, kw_only=True):
    parts: tuple[Part, ...]
    unclear: str | None = None
    """Why the parts are not all that the command does."""


class CommandDirectory(Value, kw_only=True):
    root: str
    """The Location."""
    directory: str
    """Where the command starts."""


def review(command: str, *, parse: Parse, place: CommandDirectory) -> Review:
    """All that `command` would do, as far as its text tells."""
    found = _Found(parse=parse, place=place)
    _script(found, command, depth=0)
    parts = tuple(found.parts.values())[:COMMAND_PARTS_MAX]
    return Review(parts=parts, unclear=found.unclear)


class _Found(State, kw_only=True):
    parse: Parse
    place: CommandDirectory
    parts: dict[str, Part] = field(default_factory=dict[str, Part])
    unclear: str | None = None

    def add(self, part: Part) -> None:
        self.parts.setdefault(part.text, part)
        if len(self.parts) > COMMAND_PARTS_MAX:
            self.doubt(f"it has more than {COMMAND_PARTS_MAX} parts")

    def doubt(self, why: str) -> None:
        self.unclear = self.unclear or why


def _script(found: _Found, text: str, *, depth: int) -> None:
    if depth > COMMAND_DEPTH_MAX:
        found.doubt(f"commands are nested more than {COMMAND_DEPTH_MAX} deep")
        return
    if len(text) > COMMAND_CHARS_MAX:
        found.doubt(f"it is longer than {COMMAND_CHARS_MAX} characters")
        return
    script = found.parse(text)
    if script.unclear is not None:
        found.doubt(script.unclear)
    for item in script.items:
        match item:
            case SimpleCommand(words=words):
                _command(found, words, depth=depth)
            case Assignment(source=source):
                found.add(Part(text=source, pattern=approval_pattern.exact_pattern(source)))
            case Redirection():
                _redirection(found, item)


def _command(found: _Found, words: Sequence[Word], *, depth: int) -> None:
    if depth > COMMAND_DEPTH_MAX:
        found.doubt(f"commands are nested more than {COMMAND_DEPTH_MAX} deep")
        return
    if not words or words[0].literal is None:
        found.doubt("the name of a command is only known when it runs")
        return
    if words[0].source in _RESERVED:
        # The grammar took the start of a compound command for the name of a simple one.
        found.doubt(f"where the command after {words[0].source} begins is not known here")
    if words[0].literal in _DIRECTORY_CHANGES:
        _directory_change(found, words)
        return
    wrapped = wrapper.unwrap(words)
    if wrapped.unclear is not None:
        found.doubt(wrapped.unclear)
    if wrapped.counts:
        found.add(_part(words))
    for setting in wrapped.settings:
        found.add(Part(text=setting, pattern=approval_pattern.exact_pattern(setting)))
    for inner in wrapped.commands:
        _command(found, inner, depth=depth + 1)
    for code in wrapped.scripts:
        _script(found, code, depth=depth + 1)


def _part(words: Sequence[Word], *, outside: bool = False) -> Part:
    text = render_words(words)
    source = " ".join(word.source for word in words)
    name = words[0].literal or ""
    short = f"{posixpath.basename(name)}{text.removeprefix(name)}" if "/" in name else text
    spellings = tuple({form: None for form in (source, short) if form != text})
    return Part(
        text=text, pattern=approval_pattern.pattern_for(words), spellings=spellings, outside=outside
    )


def _directory_change(found: _Found, words: Sequence[Word]) -> None:
    """Going down into the Location is free. Leaving it counts, and so does what is not known."""
    if len(words) == 2 and _is_inside(words[1].literal, found.place):
        return
    found.add(_part(words, outside=True))


def _redirection(found: _Found, redirection: Redirection) -> None:
    operator, target = redirection.operator, redirection.target
    if operator.endswith("&") and _DESCRIPTOR.fullmatch(target.source):
        return
    if target.literal in _HARMLESS_TARGETS:
        return
    inside = _is_inside(target.literal, found.place)
    reads = operator == "<"
    if reads and inside:
        return
    text = f"{'<' if reads else '>'} {render_words((target,))}"
    found.add(Part(text=text, pattern=approval_pattern.exact_pattern(text), outside=not inside))


def _is_inside(path: str | None, place: CommandDirectory) -> bool:
    """Whether `path` stays inside wherever in the Location the shell may be by then."""
    if not path or path.startswith(("~", "-")):
        return False
    if path.startswith("/"):
        normal = posixpath.normpath(path)
        return is_within(normal, place.root) or is_within(normal, place.directory)
    return posixpath.normpath(path).partition("/")[0] != ".."
