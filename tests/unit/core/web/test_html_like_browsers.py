"""Drawn pages read as a browser reads them: no word is lost, no two are glued, no link vanishes.

The reference is html5lib, which builds the tree that the HTML standard prescribes.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final, Protocol, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.core.web import html_markdown, html_text

INLINE: Final = ("a", "b", "code", "span", "em", "del", "kbd", "label", "u", "button")
BLOCKS: Final = (
    *("p", "div", "ul", "ol", "li", "h1", "h3", "pre", "table", "tr", "td", "th", "tbody", "dl"),
    *("section", "blockquote", "dt", "dd", "caption", "center", "figure", "figcaption", "summary"),
)
VOID: Final = ("br", "hr", "img src=/i")
OPTIONAL_END: Final = frozenset({"li", "p", "td", "th", "tr", "dt", "dd"})
NOISE: Final = (
    *(
        "<!-- w0 -->",
        "<!-->",
        "<!-- a --!>",
        "<? w0>",
        "</ w0>",
        "</br>",
        "&amp;",
        "&lt;",
        "&nbsp;",
    ),
    *("<script>w0</script>", "<style>w0</style>", "<svg><text>w0</text></svg>", "</ul>", "</p>"),
    "<title>t <b></title>",
)
HIDDEN: Final = frozenset({"script", "style", "svg"})
BREAKS: Final = frozenset({*html_text.BLOCKS, *html_text.BOXES, "br"})
WORD: Final = re.compile(r"w\d+")
GLUED: Final = re.compile(r"(?:w\d+){2,}")
SHOWN_TARGET: Final = re.compile(r"\[/x\d+\]\(/x\d+\)|!\[\]\(/i\)|\]\(/x\d+\)|[\[*`~]")
HTML: Final = "{http://www.w3.org/1999/xhtml}"


class Element(Protocol):
    """What is used here of an element of the reference's tree."""

    tag: object
    text: str | None
    tail: str | None

    def __iter__(self) -> Iterator["Element"]: ...
    def iter(self, tag: str) -> Iterator["Element"]: ...
    def itertext(self) -> Iterator[str]: ...
    def get(self, key: str) -> str | None: ...


@st.composite
def pages(draw: st.DrawFn) -> str:
    """Words, elements that are nested, open ends where HTML allows them, and noise."""
    parts: list[str] = []
    unclosed: list[str] = []
    for number in range(1, draw(st.integers(1, 16)) + 1):
        match draw(st.sampled_from(["word", "word", "open", "open", "close", "close", "noise"])):
            case "word":
                parts.append(f"w{number}{draw(st.sampled_from(['', '', ' ', chr(10)]))}")
            case "open":
                name = draw(st.sampled_from((*INLINE, *BLOCKS, *VOID)))
                target = f' href="/x{number}"' if name == "a" else ""
                parts.append(f"<{name}{target}{draw(st.sampled_from(['', '', ' class=line']))}>")
                unclosed += [] if name in VOID else [name]
            case "close" if unclosed:
                name = unclosed.pop()
                # An inline element that ends around an open block needs a tree.
                may_omit = name in OPTIONAL_END and not set(unclosed) & set(INLINE)
                parts.append("" if may_omit and draw(st.booleans()) else f"</{name}>")
            case _:
                parts.append(draw(st.sampled_from(NOISE)))
    return "".join(parts)


def parse(page: str) -> Element:
    return cast("Element", import_module("html5lib").parse(page))


def runs(element: Element) -> list[str]:
    """The visible text in pieces: what a browser shows without a gap is one piece."""
    found = [""]

    def visit(element: Element) -> None:
        # A comment has a function for its tag.
        if not isinstance(element.tag, str):
            return
        name = element.tag.rpartition("}")[2]
        if name in HIDDEN:
            return
        if name in BREAKS:
            found.append("")
        found[-1] += element.text or ""
        for child in element:
            visit(child)
            found[-1] += child.tail or ""
        if name in BREAKS:
            found.append("")

    visit(element)
    return found


def check_words(shown: str, expected: list[str]) -> None:
    assert sorted(WORD.findall(shown)) == sorted(WORD.findall("\n".join(expected)))
    together = [group for run in expected for group in GLUED.findall(run)]
    for group in GLUED.findall(shown):
        assert any(group in other for other in together), f"{group} is glued"


@settings(max_examples=400, deadline=None)
@given(page=pages())
def test_no_word_of_a_page_is_lost_or_glued(page: str) -> None:
    expected = runs(parse(page))
    check_words(html_text.to_text(page), expected)
    check_words(SHOWN_TARGET.sub("", html_markdown.to_markdown(page)), expected)


@settings(max_examples=400, deadline=None)
@given(page=pages().map(lambda page: f'<a href="/x99">{page}'))
def test_no_link_around_words_is_lost(page: str) -> None:
    tree = parse(page)
    in_code = {id(link) for code in tree.iter(f"{HTML}pre") for link in code.iter(f"{HTML}a")}
    shown = html_markdown.to_markdown(page)
    for link in tree.iter(f"{HTML}a"):
        words = [word for word in WORD.findall("".join(link.itertext())) if word != "w0"]
        # A link inside of code has no form in Markdown.
        if words and id(link) not in in_code:
            assert f"({link.get('href')})" in shown
