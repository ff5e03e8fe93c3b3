"""An HTML page as Markdown: ATX headings, fenced code, `-` bullets, links, tables, quotes.

One pass over core.web.html_tokens; no tree is built, so that a page which is nested without end
costs no more than its length. Elements are understood by their own tags alone, and a tag that
closes nothing is passed over.

Invariant: the words of the page are all there, in order, whatever becomes of its marks.
"""

import re
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.web import html_text, html_tokens
from perdure.core.web.html_text import BLOCKS
from perdure.core.web.html_tokens import Close, Open, Text
from perdure.schema.value import State, Value

_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS: Final = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
}
_CONTAINERS: Final = frozenset({"blockquote", "ol", "ul"})
_ROWS: Final = frozenset({"tr", "thead", "tbody", "tfoot"})
_CELLS: Final = frozenset({"td", "th"})
_LAYOUT: Final = frozenset({*_HEADINGS, "hr", "pre"})
"""No cell of data holds one of these."""
_LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source)-([\w+#.-]{1,40})")
_NO_TARGET: Final = re.compile(r"\s*(?:javascript|data|vbscript):", re.IGNORECASE)
_BACKTICKS: Final = re.compile(r"`{3,}")


def to_markdown(page: str) -> str:
    """`page` as Markdown."""
    writer = _Writer()
    for token in html_tokens.tokens(page):
        match token:
            case Text(text):
                writer.text(text)
            case Open():
                writer.open(token)
            case Close(name):
                writer.close(name)
    return writer.finish()


class _Mark(Value):
    """An inline element that is open: where it began, and where it points."""

    name: str
    start: int
    target: str = ""


class _Container(State):
    """A list or a quote that is open, and what stands before its lines."""

    name: str
    first: str = ""
    """Before the next line, once."""
    rest: str = ""
    items: int = 0
    begun: bool = False
    """Whether something of it is written."""


class _Table(State):
    layout: bool = False
    """It arranges the page and holds no data: its cells are written as blocks."""
    in_cell: bool = False
    cells: list[str] = field(default_factory=list[str])
    """Of the row that is open."""
    rows: int = 0


class _Writer:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []
        self._marks: list[_Mark] = []
        self._containers: list[_Container] = []
        self._tables: list[_Table] = []
        self._heading = ""
        self._code: str | None = None
        """The language of the code block that is open."""

    def text(self, text: str) -> None:
        if self._code is not None:
            self._words.append(text)
            return
        shown = html_text.collapse_spaces(text)
        begins = not self._words or self._words[-1][-1:] in {" ", "\n"}
        if begins:
            shown = shown.removeprefix(" ")
        if shown:
            self._words.append(shown)

    def open(self, tag: Open) -> None:
        name = tag.name
        if self._code is not None:
            if name == "code" and not self._code:
                self._code = _language(tag)
        elif name in _MARKS or name == "a":
            self._open_mark(tag)
        elif name == "br":
            self._words.append("\n")
        elif name == "img":
            self._picture(tag)
        elif name == "table":
            self._open_table()
        elif name in _CELLS:
            self._open_cell()
        elif name in _ROWS:
            self._end_row()
        elif name in BLOCKS:
            self._open_block(tag)

    def close(self, name: str) -> None:
        if self._code is not None:
            if name == "pre":
                self._end_code()
        elif name in _MARKS or name == "a":
            self._close_mark(name)
        elif name == "table":
            self._close_table()
        elif name in _CELLS:
            self._end_cell()
        elif name in _ROWS:
            self._end_row()
        elif name in BLOCKS:
            self._end_block()
            self._heading = ""
            self._close_container(name)

    def finish(self) -> str:
        if self._code is not None:
            self._end_code()
        self._end_row()
        self._end_block()
        return "\n".join(self._lines).strip("\n")

    def _open_block(self, tag: Open) -> None:
        name = tag.name
        if name in _LAYOUT:
            self._lay_out()
        self._end_block()
        if self._cell() is not None:
            return
        self._heading = _HEADINGS.get(name, "")
        if name == "hr":
            self._block(["---"])
        elif name == "pre":
            self._code = _language(tag)
        elif name == "li":
            self._item()
        elif name in _CONTAINERS and len(self._containers) < limits.WEB_NESTING_MAX:
            sign = "> " if name == "blockquote" else ""
            self._containers.append(_Container(name, sign, sign))

    def _close_container(self, name: str) -> None:
        for index in reversed(range(len(self._containers))):
            if self._containers[index].name == name:
                del self._containers[index:]
                return

    def _item(self) -> None:
        if not self._containers or self._containers[-1].name == "blockquote":
            return
        within = self._containers[-1]
        within.items += 1
        within.first = f"{within.items}. " if within.name == "ol" else "- "
        within.rest = " " * len(within.first)

    def _end_block(self) -> None:
        if self._cell() is not None:
            # Lines are all that a cell has room for.
            self._words.append(" ")
            return
        self._marks.clear()
        text = "".join(self._words).strip()
        self._words.clear()
        if text and self._heading:
            self._block([f"{self._heading} {html_text.collapse_spaces(text)}"])
        elif text:
            self._block([line.strip() for line in text.split("\n")])

    def _block(self, lines: list[str]) -> None:
        """Write a block after an empty line; the items of a list follow each other closely."""
        first = "".join(container.first for container in self._containers)
        rest = self._indent()
        if self._lines and not self._continues_list():
            begun = (container.rest for container in self._containers if container.begun)
            self._lines.append("".join(begun).rstrip())
        for container in self._containers:
            container.first, container.begun = container.rest, True
        self._lines.append(f"{first}{lines[0]}")
        self._lines += (f"{rest}{line}".rstrip() for line in lines[1:])

    def _continues_list(self) -> bool:
        if not self._containers:
            return False
        within = self._containers[-1]
        nested = len(self._containers) > 1 and self._containers[-2].items > 0
        return within.first != within.rest and (within.items > 1 or nested)

    def _indent(self) -> str:
        return "".join(container.rest for container in self._containers)

    def _open_mark(self, tag: Open) -> None:
        if len(self._marks) >= limits.WEB_NESTING_MAX:
            return
        target = (html_tokens.attribute(tag, "href") or "").strip() if tag.name == "a" else ""
        shown = "" if _NO_TARGET.match(target) else target
        self._marks.append(_Mark(tag.name, len(self._words), shown))

    def _close_mark(self, name: str) -> None:
        # The outermost of its kind: what is bold within bold is marked once.
        index = next((at for at, mark in enumerate(self._marks) if mark.name == name), None)
        if index is None:
            return
        mark = self._marks[index]
        del self._marks[index:]
        inner = "".join(self._words[mark.start :])
        del self._words[mark.start :]
        words = inner.strip()
        before = inner[: len(inner) - len(inner.lstrip())]
        after = inner[len(inner.rstrip()) :] if words else ""
        self._words += (part for part in (before, _marked(mark, words), after) if part)

    def _picture(self, tag: Open) -> None:
        words = html_text.collapse_spaces(html_tokens.attribute(tag, "alt") or "").strip()
        source = (html_tokens.attribute(tag, "src") or "").strip()
        if source and not _NO_TARGET.match(source):
            self._words.append(f"![{words}]({source})")
        elif words:
            self._words.append(words)

    def _end_code(self) -> None:
        text = "".join(self._words).strip("\n")
        self._words.clear()
        language, self._code = self._code or "", None
        if not text.strip():
            return
        longest = max((len(found[0]) for found in _BACKTICKS.finditer(text)), default=2)
        fence = "`" * (longest + 1)
        self._block([f"{fence}{language}", *text.split("\n"), fence])

    def _cell(self) -> _Table | None:
        """The table of the cell that is open."""
        table = self._tables[-1] if self._tables else None
        return table if table is not None and table.in_cell else None

    def _open_table(self) -> None:
        # A table within a table: the outer one arranges the page.
        self._lay_out()
        self._end_block()
        if len(self._tables) < limits.WEB_NESTING_MAX:
            self._tables.append(_Table())

    def _close_table(self) -> None:
        self._end_row()
        self._end_block()
        if self._tables:
            self._tables.pop()

    def _lay_out(self) -> None:
        """From here on the table that is open is no table."""
        if not self._tables:
            return
        table = self._tables[-1]
        table.layout, table.in_cell = True, False
        cells, table.cells = table.cells, []
        for cell in filter(None, cells):
            self._block([cell])

    def _open_cell(self) -> None:
        self._end_cell()
        self._end_block()
        if self._tables and not self._tables[-1].layout:
            self._tables[-1].in_cell = True

    def _end_cell(self) -> None:
        table = self._cell()
        if table is None:
            self._end_block()
            return
        self._marks.clear()
        text = html_text.collapse_spaces("".join(self._words)).strip()
        self._words.clear()
        table.in_cell = False
        table.cells.append(text.replace("|", "\\|"))

    def _end_row(self) -> None:
        self._end_cell()
        if not self._tables or not self._tables[-1].cells:
            return
        table = self._tables[-1]
        cells, table.cells = table.cells, []
        row = f"| {' | '.join(cells)} |"
        table.rows += 1
        if table.rows == 1:
            self._block([row, f"|{' --- |' * len(cells)}"])
        else:
            self._lines.append(f"{self._indent()}{row}")


def _marked(mark: _Mark, words: str) -> str:
    if not words:
        return ""
    if mark.name != "a":
        sign = _MARKS[mark.name]
        return f"{sign}{words}{sign}"
    return f"[{words}]({mark.target})" if mark.target else words


def _language(tag: Open) -> str:
    found = _LANGUAGE.search(html_tokens.attribute(tag, "class") or "")
    return "" if found is None else found[1]
