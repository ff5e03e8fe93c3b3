"""Makes texts that are hard for a regular expression, from its own parse tree.

For each repeat in the pattern: what the pattern matches before it, then a long run of what the
repeat matches, then something that lets the match fail. For a search also the beginning of a
match again and again. A pattern that backtracks needs quadratic time, or worse, for one of them.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

_PARSER: Final = importlib.import_module("re._parser")
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_LONG_REPEAT: Final = 100
_USUAL: Final = "a0 A_-.\n\t:/\"'=,@#<{[(\\"
_ENDS: Final = ("", "\x00", "\n\x00")
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


@dataclass(frozen=True)
class HardText:
    """A text of any length: a start, a run of the same characters, and an end."""

    start: str
    run: str
    end: str = ""

    def of_length(self, length: int) -> str:
        return self.start + self.run * (length // len(self.run)) + self.end


def make_hard_texts(pattern: re.Pattern[str] | re.Pattern[bytes]) -> list[HardText]:
    """Texts for which a pattern that backtracks takes longest."""
    source = pattern.pattern
    text = source if isinstance(source, str) else source.decode("latin-1")
    tree = _convert(_PARSER.parse(text, pattern.flags & ~re.UNICODE))
    alphabet = "".join(dict.fromkeys((*_named(tree), *_USUAL)))
    found: dict[HardText, None] = {}
    for start, run in dict.fromkeys(_runs(tree, "", alphabet)):
        found |= dict.fromkeys(HardText(start, run, end) for end in _ENDS)
        found[HardText("", start + run)] = None
    for character in alphabet:
        found[HardText("", _sample(tree, character, 0)[:-1] or character)] = None
    return list(found)


@dataclass(frozen=True)
class _Characters:
    """One character of a set."""

    expression: re.Pattern[str]
    named: str
    """The characters that the pattern names one by one."""


@dataclass(frozen=True)
class _Group:
    """One of the bodies, from `least` to `most` times; an assertion takes no text."""

    bodies: "tuple[_Nodes, ...]"
    least: int = 1
    most: int = 1


_Nodes = Sequence[_Characters | _Group]


def _runs(nodes: _Nodes, before: str, alphabet: str) -> Iterator[tuple[str, str]]:
    """Each long repeat: what comes before it, and what it repeats."""
    for index, node in enumerate(nodes):
        if isinstance(node, _Characters):
            continue
        start = before + _sample(nodes[:index], "a", 0)
        for body in node.bodies:
            if node.most > _LONG_REPEAT:
                yield from ((start, run) for run in _variants(body, alphabet))
            yield from _runs(body, start, alphabet)


def _variants(nodes: _Nodes, alphabet: str) -> Iterable[str]:
    """Texts that the nodes match, with each character that fits and each alternative."""
    found = [_sample(nodes, character, 0) for character in alphabet]
    found += [_sample(nodes, "a", alternative) for alternative in range(1, 8)]
    return [text for text in dict.fromkeys(found) if text]


def _sample(nodes: _Nodes, wish: str, alternative: int) -> str:
    """A text that the nodes match, with the character `wish` wherever it fits."""
    return "".join(_sample_node(node, wish, alternative) for node in nodes)


def _sample_node(node: _Characters | _Group, wish: str, alternative: int) -> str:
    if isinstance(node, _Characters):
        candidates = (wish, *node.named, *_USUAL, *map(chr, range(33, 127)), "\x80")
        return next((one for one in candidates if node.expression.match(one)), wish)
    body = node.bodies[alternative % len(node.bodies)]
    return _sample(body, wish, alternative) * min(max(node.least, 1), node.most)


def _named(nodes: _Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _Characters):
            yield from node.named
        else:
            for body in node.bodies:
                yield from _named(body)


class _Parsed(Protocol):
    """What `re._parser` makes of a pattern: operations with their arguments."""

    data: list[tuple[object, object]]


def _convert(parsed: _Parsed) -> _Nodes:
    return tuple(node for operation, value in parsed.data for node in _node(str(operation), value))


def _node(name: str, value: object) -> _Nodes:
    if name in _REPEATS:
        least, most, body = cast("tuple[int, int, _Parsed]", value)
        return (_Group((_convert(body),), least, most),)
    match name:
        case "LITERAL" | "NOT_LITERAL":
            character = chr(cast("int", value))
            sign = "^" if name == "NOT_LITERAL" else ""
            return (_Characters(_set(sign + _in_set(character)), character),)
        case "ANY":
            return (_Characters(re.compile(".", re.DOTALL), ""),)
        case "IN":
            return (_in(cast("list[tuple[object, object]]", value)),)
        case "BRANCH":
            _, branches = cast("tuple[None, list[_Parsed]]", value)
            return (_Group(tuple(_convert(branch) for branch in branches)),)
        case "SUBPATTERN":
            return _convert(cast("tuple[object, object, object, _Parsed]", value)[3])
        case "ATOMIC_GROUP":
            return _convert(cast("_Parsed", value))
        case "ASSERT" | "ASSERT_NOT":
            _, body = cast("tuple[int, _Parsed]", value)
            return (_Group((_convert(body),), 0, 0),)
        case _:
            return ()


def _in(members: Sequence[tuple[object, object]]) -> _Characters:
    expression, named = "", ""
    for operation, value in members:
        match str(operation):
            case "NEGATE":
                expression = "^"
            case "LITERAL":
                named += chr(cast("int", value))
                expression += _in_set(named[-1])
            case "RANGE":
                low, high = cast("tuple[int, int]", value)
                expression += f"{_in_set(chr(low))}-{_in_set(chr(high))}"
            case _:
                expression += _CATEGORIES[str(value)]
    return _Characters(_set(expression), named)


def _set(expression: str) -> re.Pattern[str]:
    return re.compile(f"[{expression}]")


def _in_set(character: str) -> str:
    return f"\\U{ord(character):08x}"
