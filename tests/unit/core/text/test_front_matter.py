"""Front matter: what people write there is understood, and whatever they write cannot hurt."""

import contextlib
import time
from collections.abc import Callable

import pytest

from perdure.core.text import front_matter, yaml
from perdure.core.text.front_matter import FrontMatterError
from perdure.schema import codec
from perdure.schema.codec import JsonValue


def fields(head: str) -> JsonValue:
    return front_matter.split(f"---\n{head}\n---\nbody")[0]


@pytest.mark.parametrize(
    ("text", "found", "body"),
    [
        ("no front matter", {}, "no front matter"),
        ("", {}, ""),
        ("---\nname: a\n---\n\nbody\n\nmore\n", {"name": "a"}, "body\n\nmore"),
        ("---\nname: a\n...\nbody", {"name": "a"}, "body"),
        ("---  \nname: a\n--- \t\nbody", {"name": "a"}, "body"),
        ("---\n---\nbody", {}, "body"),
        ("---\n# only a comment\n---\nbody", {}, "body"),
        ("---\nname: a\n---", {"name": "a"}, ""),
        ("---\n\n    code\n---\n", None, None),
        ("text\n---\nname: a\n---\n", {}, "text\n---\nname: a\n---"),
        ("----\nname: a\n----\n", {}, "----\nname: a\n----"),
        ("\ufeff---\r\nname: a\r\n---\r\none\r\ntwo\r\n", {"name": "a"}, "one\ntwo"),
        ("---\rname: a\r---\rbody", {"name": "a"}, "body"),
        ("---\nname: a\n---\n    indented code\n", {"name": "a"}, "    indented code"),
        ("---\nname: a\n---\none\n---\ntwo", {"name": "a"}, "one\n---\ntwo"),
    ],
)
def test_front_matter_stands_between_its_marks(
    text: str, found: JsonValue, body: str | None
) -> None:
    if body is None:
        with pytest.raises(FrontMatterError):
            front_matter.split(text)
    else:
        assert front_matter.split(text) == (found, body)


@pytest.mark.parametrize(
    ("text", "found", "body"),
    [
        ("---\nname: a\ndescription: b\n\nbody: of it\n", {"name": "a", "description": "b"}, None),
        ("---\nname: a", {"name": "a"}, ""),
        ("---\nA rule, and then prose.\n\nMore.", {}, "---\nA rule, and then prose.\n\nMore."),
        ("---\n- a list\n\nMore.", {}, "---\n- a list\n\nMore."),
        ("---\na: b\n nonsense\n:\n\nMore.", {}, "---\na: b\n nonsense\n:\n\nMore."),
    ],
)
def test_a_missing_end_costs_no_text(text: str, found: JsonValue, body: str | None) -> None:
    assert front_matter.split(text) == (found, "body: of it" if body is None else body)


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("plain words", "plain words"),
        ("Use when: there is a colon", "Use when: there is a colon"),
        ("see https://example.org/a:b", "see https://example.org/a:b"),
        ("words # and a comment", "words"),
        ("C# is no comment", "C# is no comment"),
        ("# only a comment", None),
        ("[draft] use with care", "[draft] use with care"),
        ("{open", "{open"),
        ('"quoted: text" # comment', "quoted: text"),
        ('"open', '"open'),
        ('"closed" and more', '"closed" and more'),
        (r'"tab\t quote\" back\\ \x41 \u00e9 \U0001F600"', 'tab\t quote" back\\ A é 😀'),
        (r'"\ud83d\ude00 and \ud800"', "😀 and \ufffd"),
        (r'"C:\dir and \U00110000"', r"C:\dir and \U00110000"),
        ("'it''s'", "it's"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        ("1e999", "1e999"),
        ("007", "007"),
        ("9" * 5_000, "9" * 5_000),
        ("1.2.3", "1.2.3"),
        ("2024-01-01", "2024-01-01"),
        ("&anchor *alias !tag", "&anchor *alias !tag"),
        ("[a, 'b, c', \"d\", 1, true, , ]", "[a, 'b, c', \"d\", 1, true, , ]"),
        ("[a, 'b, c', \"d\", 1, true, ]", ["a", "b, c", "d", 1, True]),
        ('{a: 1, "b":[2, {c: d:e}], }', {"a": 1, "b": [2, {"c": "d:e"}]}),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_a_value_on_the_line_of_its_key(head: str, value: JsonValue) -> None:
    assert fields(f"key: {head}") == {"key": value}
    assert fields(f"other: 1\nkey: {head}\nlast: 2") == {"other": 1, "key": value, "last": 2}


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("key:\n- a\n- b: 1\n  c: 2\n-\n  - d\n- - e", ["a", {"b": 1, "c": 2}, ["d"], ["e"]]),
        ("key:\n  - a\n  # between\n\n  - b", ["a", "b"]),
        ("key:\n  a: 1\n  b:\n    c: 2", {"a": 1, "b": {"c": 2}}),
        ("key:\n\ta: 1\n\tb: 2", {"a": 1, "b": 2}),
        ("key: # comment\n  a: 1", {"a": 1}),
        (
            'key:\n  "git push *": deny\n  git *: ask\n  *: allow',
            {"git push *": "deny", "git *": "ask", "*": "allow"},
        ),
        ("key: |\n  one\n   two\n\n  # three", "one\n two\n\n# three\n"),
        ("key: |-\n  one\n  two\n", "one\ntwo"),
        ("key: |+\n  one\n\n", "one\n\n\n"),
        ("key: |2\n   one\n  two", " one\ntwo\n"),
        ("key: >\n  one\n  two\n\n  three\n    more\n  end", "one two\nthree\n  more\nend\n"),
        ("key: >-\n  one\n  two", "one two"),
        ("key: |", ""),
        ("key: one\n  two\n\n  three: four", "one two\nthree: four"),
        ("key:\n  one\n  two", "one two"),
        ('key: "one\n  two"', "one two"),
        ("key: [a, # first\n  b\n]", ["a", "b"]),
        ("key: [\n  a,\n  b,\n  ]", ["a", "b"]),
        ("key: first\nkey: second", "second"),
        ("key:", None),
        ('"key" : quoted', "quoted"),
    ],
)
def test_a_value_that_takes_more_lines(head: str, value: JsonValue) -> None:
    assert fields(head) == {"key": value}


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("a: 1\nb", 3),
        ("a:\n    b: 1\n  c: 2", 4),
        ("a: 1\n- b", 3),
        ("- a\nb: 1", 3),
        (": a", None),
        ("just text", None),
        ("[a, b]", None),
        ("a:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 50)), 35),
        ("- " * 100, 2),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(head: str, line: int | None) -> None:
    with pytest.raises(FrontMatterError) as refused:
        fields(head)
    assert line is None or str(refused.value).startswith(f"line {line} ")


HOSTILE: dict[str, Callable[[int], str]] = {
    "open brackets": lambda size: "a: " + "[" * size,
    "open braces": lambda size: "a: " + "{" * size,
    "lines of brackets": lambda size: "a: [\n" * (size // 5),
    "quotes": lambda size: 'a: "' + '\\"' * (size // 2),
    "single quotes": lambda size: "a: '" + "''" * (size // 2),
    "blanks": lambda size: "a: [" + " " * size + "x",
    "comments": lambda size: "a:" + " #" * (size // 2),
    "keys": lambda size: "a: {" + "a:" * (size // 2),
    "words": lambda size: "a: [" + "x, " * (size // 3),
    "deep lines": lambda size: "".join(f"{' ' * (n % 200)}a: b\n" for n in range(size // 100)),
    "blank lines": lambda size: "a: |\n" + "\n" * size + "b: 1",
    "folded": lambda size: "a: >\n" + "  x\n\n" * (size // 5),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_large_hostile_text_is_read_in_no_time(make: Callable[[int], str]) -> None:
    text = f"---\n{make(100_000)}\n---\n"
    start = time.process_time()
    with contextlib.suppress(FrontMatterError):
        codec.encode(front_matter.split(text)[0])
    # A tenth of it is usual. What looks at everything again for each character takes many seconds.
    assert time.process_time() - start < 2


def test_lines_of_a_problem_are_counted_from_the_top_of_the_text() -> None:
    with pytest.raises(yaml.PlainYamlError) as refused:
        yaml.read("a: 1\n\n\nb\n")
    assert refused.value.line == 4
