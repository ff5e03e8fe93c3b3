"""The parts of a shell command that permission rules must allow.

Every simple command counts wherever it appears, and so does each variable assignment and each file
written to, because any of them can change what the others do. Programs that run other programs are
expanded (core.shell.wrapper), and core.shell.suspicion lists what others may run. The caller passes
in the parser. This is a convenience for people, not a sandbox: an allowed program may do anything.

Invariant: a review is clear only if every word is literal and every argument was looked into. Parts
that cannot be determined make it unclear; none is left out silently.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import field

from perdure.core.files.paths import is_within
from perdure.core.limits import COMMAND_CHARS_MAX, COMMAND_DEPTH_MAX, COMMAND_PARTS_MAX
from perdure.core.shell import approval_pattern, builtin, program_code, suspicion, wrapper
from perdure.core.shell.word import Word, render_words
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import State, Value

_DIRECTORY_CHANGES: Final = frozenset({"cd", "pushd"})
_HARMLESS_TARGETS: Final = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"}
)
_NAME: Final = lazy_pattern(r"[A-Za-z0-9_./][\w@%+:,./-]*|\[|:", re.ASCII)
_SETTING: Final = lazy_pattern(r"([A-Za-z_]\w*)=[\w@%+:,./-]*", re.ASCII)
_VARIABLES_TEXT: Final = """
    CGO_ENABLED CI COLUMNS DEBIAN_FRONTEND DEBUG FORCE_COLOR GOARCH GOOS LINES LOG_LEVEL NODE_ENV
    NO_COLOR PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED RAILS_ENV RUST_BACKTRACE
    RUST_LOG TERM TZ VERBOSE
"""
_VARIABLES: Final = frozenset(_VARIABLES_TEXT.split())
"""Variables that name no program, no file and no code."""
_COMPUTED: Final = lazy_pattern(r"^\+|[\[$`(]")
_DESCRIPTOR: Final = lazy_pattern(r"[0-9]*-?")


class SimpleCommand(Value):
    """A program or built-in with its arguments. The first word is its name."""

    words: tuple[Word, ...]


class Assignment(Value):
    """Sets variables: `A=1`, `export A=1`, `for A in ...`, `unset A`."""

    source: str


class Redirection(Value):
    operator: str
    target: Word


class Script(Value):
    """A parsed text: its items in order, and why some of it is unclear."""

    items: tuple[SimpleCommand | Assignment | Redirection, ...] = ()
    unclear: str | None = None


Parse = Callable[[str], Script]


class Part(Value, kw_only=True):
    """One part of a command, which a rule must allow."""

    text: str
    """Normalised, independent of quoting."""
    pattern: str | None = None
    """The pattern that "always" saves; None if it cannot be saved."""
    spellings: tuple[str, ...] = ()
    """Other forms of it, by which a rule may deny it or ask."""
    suspected: tuple[str, ...] = ()
    """Commands that it may run, by which a rule may ask."""
    outside: bool = False
    """Whether it accesses a path outside the Location."""


class Review(Value, kw_only=True):
    parts: tuple[Part, ...]
    unclear: str | None = None
    """Why the command may do more than its parts."""


class CommandDirectory(Value, kw_only=True):
    root: str
    """The Location's directory."""
    directory: str
    """The working directory of the command."""


def review(command: str, *, parse: Parse, place: CommandDirectory) -> Review:
    """The parts of `command`, as far as its text shows them."""
    found = _Found(parse=parse, place=place)
    _script(found, command, depth=0)
    parts = tuple(found.parts.values())[:COMMAND_PARTS_MAX]
    return Review(parts=parts, unclear=found.unclear)


class _Found(State, kw_only=True):
    parse: Parse
    place: CommandDirectory
    parts: dict[str, Part] = field(default_factory=dict[str, Part])
    named: set[str] = field(default_factory=set[str])
    """Files that the commands so far may have written, by the last part of their names."""
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
                _setting(found, source)
            case Redirection():
                _redirection(found, item)


def _command(found: _Found, words: Sequence[Word], *, depth: int) -> None:
    if depth > COMMAND_DEPTH_MAX:
        found.doubt(f"commands are nested more than {COMMAND_DEPTH_MAX} deep")
        return
    if not words or words[0].literal is None:
        found.doubt("the name of a command is only known when it runs")
        return
    if words[0].literal in _DIRECTORY_CHANGES:
        _directory_change(found, words)
        return
    wrapped = wrapper.unwrap(words)
    for why in (_unclear_name(words[0]), wrapped.unclear, _unclear_words(words)):
        if why is not None:
            found.doubt(why)
    if wrapped.counts:
        _check_run_file(found, words)
        found.add(_part(words))
    for setting in wrapped.settings:
        _setting(found, setting)
    for inner in wrapped.commands:
        _command(found, inner, depth=depth + 1)
    for code in wrapped.scripts:
        _script(found, code, depth=depth + 1)


def _check_run_file(found: _Found, words: Sequence[Word]) -> None:
    """A file that is run may not be one that the same text has written: its code is not known."""
    run = posixpath.basename(program_code.run_file(words) or "")
    if run in found.named:
        found.doubt(f"what {run} does may have been written by the same command")
    found.named |= suspicion.named_files(words)


def _unclear_name(word: Word) -> str | None:
    name = word.literal or ""
    plain = _NAME.fullmatch(name) and ("/" not in name or program_code.is_script(name))
    return None if plain else f"{word.source} is not the plain name of a program"


def _unclear_words(words: Sequence[Word]) -> str | None:
    return builtin.unclear_builtin(words) or program_code.unclear_code(words)


def _setting(found: _Found, source: str) -> None:
    """A variable that is set. Most can name a program or code for one of the other parts."""
    known = _SETTING.fullmatch(source)
    if known is None or known[1] not in _VARIABLES:
        found.doubt(f"what {source.partition('=')[0]} changes is not looked into")
    found.add(Part(text=source, pattern=approval_pattern.exact_pattern(source)))


def _part(words: Sequence[Word], *, outside: bool = False) -> Part:
    text = render_words(words)
    source = " ".join(word.source for word in words)
    forms = (source, *suspicion.other_names(words))
    return Part(
        text=text,
        pattern=approval_pattern.pattern_for(words),
        spellings=tuple({form: None for form in forms if form != text}),
        suspected=suspicion.suspected_commands(words),
        outside=outside,
    )


def _directory_change(found: _Found, words: Sequence[Word]) -> None:
    """Changing within the Location is no part; leaving it or an unknown target is."""
    if any(_COMPUTED.search(word.literal or "") for word in words):
        found.doubt(f"what {words[0].literal} makes of these words is not looked into")
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
    found.named.add(posixpath.basename(target.literal or ""))
    found.add(Part(text=text, pattern=approval_pattern.exact_pattern(text), outside=not inside))


def _is_inside(path: str | None, place: CommandDirectory) -> bool:
    """Whether `path` is inside, from any directory of the Location that the shell may be in."""
    if not path or path.startswith(("~", "-")):
        return False
    if path.startswith("/"):
        normal = posixpath.normpath(path)
        return is_within(normal, place.root) or is_within(normal, place.directory)
    return posixpath.normpath(path).partition("/")[0] != ".."
