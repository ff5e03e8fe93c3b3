"""Drawn documents of the YAML that front matter may use are read as PyYAML reads them."""

from importlib import import_module
from random import Random
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perdure.core.text import yaml
from perdure.schema.codec import JsonValue

KEYS: Final = (
    "a",
    "b",
    "c",
    "k1",
    "x y",
    "'q k'",
    '"dq"',
    "a-b",
    "é",
    "a ",
    "'x: y'",
    "a:b",
    "a#b",
)
SCALARS: Final = (
    *(
        "a",
        "b c",
        "1",
        "-7",
        "0",
        "1.5",
        "-0.25",
        "+5",
        ".5",
        "1.0e+3",
        "true",
        "FALSE",
        "null",
        "~",
    ),
    *("x-y", "a:b", "http://x/y", "a#b", "a b # c", "a, b", "v1.2.3", "a|b", "a > b", "a\tb", "é"),
    *("'q'", '"q"', "'it''s'", r'"a\nb\t\"c\""', r'"\u00e9\x41"', "'a: b'", '"# no"', "''", '""'),
    *("-a", "?x", ":x", "a:", "x]", "a{", "'x' # c", '"x"   # c', "[1] # c", "-- a"),
    *("[1, 2]", "[a, 'b', \"c\"]", "[]", "{}", "[ ]", "{ }", "[a,]", "[a, b c]", '["a]b"]'),
    *("{a: 1, b: [x]}", "[a, {b: c}]", "{a: }", "{'a b': 1}", "{a: 'x, y'}", "{a, b: 1}", "{a:1}"),
    *(
        "[a: 1, b]",
        "['a': 1, {b}]",
        "[a : 1]",
        '{"a":1}',
        "[a:b, c]",
        "[http://x/y, b]",
        "[a#b, c]",
    ),
    *("[[a], [b, [c]]]", "{a: {b: {}}}", "[null, ~, true, 1.5]", "{a: 'b''c'}", "['a' , \"b\" ]"),
)
LONG_SCALARS: Final = (
    *("a\n@b", "a\n\n@b c", "'a\n@b'", '"a\n\n@b"', "[a,\n@b]", "{a: 1,\n@b: 2}", "a\n@# c"),
    *(
        "[\n@a, # c\n@b,\n@]",
        "{\n@a: [1,\n@2],\n@}",
        '"a \\\n@b"',
        "'a\n@  b\n\n\n@c'",
        '["a\n@b", c]',
    ),
    *("\n@plain", "\n@'quoted' # c", "\n@[a]", "{\"a b\":\n@[1], c: 'd\n@e'}", '"a\\\\\n@b"'),
    *('"a\\\n@\\ b"', '"a  \n@ b "', "' a\n\n@b ' # c"),
)
"""Over several lines; `@` stands for the indentation."""
BLOCK_LINES: Final = ("x", "y z", "", "  in", "# c", "\t", "- i", "k: v", "\tx", "x\t ")


def write_mapping(chance: Random, indent: int, depth: int) -> str:
    keys = chance.sample(KEYS, chance.randint(1, 3))
    return "".join(
        f"{_noise(chance, indent)}{' ' * indent}{key}:{_value(chance, indent, depth)}"
        for key in dict.fromkeys(key.strip() for key in keys)
    )


def _list(chance: Random, indent: int, depth: int) -> str:
    return "".join(
        f"{_noise(chance, indent)}{' ' * indent}-{_value(chance, indent, depth)}"
        for _ in range(chance.randint(1, 3))
    )


def _value(chance: Random, indent: int, depth: int) -> str:
    """What follows a colon or a dash."""
    step = chance.choice((1, 2, 2, 3, 4))
    deeper = " " * (indent + step)
    kind = chance.random()
    if depth > 3 or kind < 0.4:
        tail = chance.choice(("", "", " ", "  # t"))
        return f"{' ' * chance.choice((1, 1, 2))}{chance.choice(SCALARS)}{tail}\n"
    if kind < 0.5:
        return f" {chance.choice(LONG_SCALARS)}\n".replace("@", deeper)
    if kind < 0.6:
        header = chance.choice("|>") + chance.choice(("", "-", "+"))
        lines = chance.choices(BLOCK_LINES, k=chance.randint(1, 3))
        return f" {header}\n" + "".join(f"{deeper + line if line else ''}\n" for line in lines)
    write = write_mapping if kind < 0.8 else _list
    return chance.choice(("\n", "\n", " \n", " # c\n")) + write(chance, indent + step, depth + 1)


def _noise(chance: Random, indent: int) -> str:
    return chance.choice((*[""] * 8, "\n", " " * indent + "# c\n", "   \n"))


@settings(max_examples=1_000, deadline=None)
@given(chance=st.randoms(use_true_random=False), has_end=st.booleans())
def test_a_document_is_read_like_pyyaml_reads_it(chance: Random, has_end: bool) -> None:
    text = write_mapping(chance, 0, 0)
    text = text if has_end else text.rstrip("\n")
    reference = import_module("yaml")
    try:
        expected: JsonValue = reference.safe_load(text)
    except reference.YAMLError:
        assume(False)
    else:
        # The types count too: 1 is not True.
        assert repr(yaml.read(text)) == repr(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a: }", {"a": None}),
        ("{a, b: 1}", {"a": None, "b": 1}),
        ("[a: 1, b]", [{"a": 1}, "b"]),
        ('"a \\\n  b"', "a b"),
        ('"a\\\\\n  b"', "a\\ b"),
        ("[\"a\n  b\", 'c\n\n  d']", ["a b", "c\nd"]),
        ("|\n  \t\n", "\t\n"),
        ("|-\n  \t\n  a\n", "\t\na"),
    ],
)
def test_forms_that_were_read_otherwise(text: str, expected: JsonValue) -> None:
    assert yaml.read(f"x: {text}") == {"x": expected}
