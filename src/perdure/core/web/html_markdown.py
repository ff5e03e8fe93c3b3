"""Converts HTML to Markdown: ATX headings, fenced code, `-` bullets, links, tables, quotes.

One pass over core.web.html_tokens without building a tree, so that deep nesting costs no more than
the page's length. Elements are interpreted by their own tags alone, and unmatched closing tags are
ignored.

Invariant: all words of the page appear in order, even if their formatting is lost.
"""

import re
from typing import Final

from msgspec import field, structs

from perdure.core import limits
from perdure.core.web import html_text, html_tokens
from perdure.core.web.html_text import BLOCKS, BOXES, PREFORMATTED, CodeLines
from perdure.core.web.html_tokens import Close, Open, Text, Token
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
_LAYOUT: Final = frozenset({*_HEADINGS, *PREFORMATTED, "hr"})
"""Elements that do not occur in data cells."""
_LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source)-([\w+#.-]{1,40})")
_NO_TARGET: Final = re.compile(r"\s*(?:javascript|data|vbscript):", re.IGNORECASE)
_BACKTICKS: Final = re.compile(r"`{3,}")


def to_markdown(page: str) -> str:
    """`page` as Markdown."""
    writer = _Writer()
    for token in html_tokens.tokens(page):
        writer.take(token)
    return writer.finish()


class _Mark(Value):
    """An open inline element: its start, and the target of a link."""

    name: str
    start: int
    target: str = ""
    in_cell: bool = False
    """Whether it began in the open cell of a table, and ends with it."""
    blocks: bool = False
    """Whether blocks were written since it began."""
    linked: bool = False
    """Whether something was written with its target."""


class _Container(State):
    """An open list or quote, and the prefixes of its lines."""

    name: str
    first: str = ""
    """Prefix of the next line only."""
    rest: str = ""
    items: int = 0
    begun: bool = False
    """Whether a part of it has been written."""


class _Table(State):
    layout: bool = False
    """Whether it is a layout table, whose cells are written as blocks."""
    in_cell: bool = False
    cells: list[str] = field(default_factory=list[str])
    """Cells of the open row."""
    rows: int = 0


class _Writer:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []
        self._pictures: set[str] = set()
        """The pictures among the words."""
        self._marks: list[_Mark] = []
        self._containers: list[_Container] = []
        self._tables: list[_Table] = []
        self._heading = ""
        self._code: CodeLines | None = None
        """The open code block."""
        self._language = ""

    def take(self, token: Token) -> None:
        code = self._code
        if code is not None:
            if isinstance(token, Close) and token.name == code.element:
                self._end_code(code)
                return
            if isinstance(token, Open) and token.name == "code" and not self._language:
                self._language = _language(token)
            code.take(token)
            return
        match token:
            case Text(text):
                self._text(text)
            case Open():
                self._open(token)
            case Close(name):
                self._close(name)

    def _text(self, text: str) -> None:
        shown = html_text.collapse_spaces(text)
        begins = not self._words or self._words[-1][-1:] in {" ", "\n"}
        if begins:
            shown = shown.removeprefix(" ")
        if shown:
            self._words.append(shown)

    def _open(self, tag: Open) -> None:
        name = tag.name
        if name in _MARKS or name == "a":
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
        elif name in BOXES:
            self._text(" ")

    def _close(self, name: str) -> None:
        if name in _MARKS or name == "a":
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
        elif name in BOXES:
            self._text(" ")

    def finish(self) -> str:
        if self._code is not None:
            self._end_code(self._code)
        self._close_mark("a")
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
        elif name in PREFORMATTED:
            self._code, self._language = CodeLines(name), _language(tag)
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
            # A cell cannot contain blocks.
            self._words.append(" ")
            return
        self._end_marks()
        text = "".join(self._words).strip()
        self._words.clear()
        self._pictures.clear()
        if text and self._heading:
            self._block([f"{self._heading} {html_text.collapse_spaces(text)}"])
        elif text:
            self._block([line.strip() for line in text.split("\n")])

    def _end_marks(self) -> None:
        """End the open marks with their block. A link goes on until words have its target."""
        link = next((mark for mark in self._marks if mark.name == "a"), None)
        self._marks.clear()
        if link is None:
            return
        pieces = self._words[link.start :]
        before, inner, after = _split_blanks("".join(pieces))
        has_words = any(piece.strip() and piece not in self._pictures for piece in pieces)
        if inner:
            shown = _marked(link, html_text.collapse_spaces(inner))
            self._words[link.start :] = [before, shown, after]
        self._marks.append(
            structs.replace(
                link,
                start=0,
                target="" if has_words else link.target,
                blocks=True,
                linked=link.linked or bool(inner),
            )
        )

    def _block(self, lines: list[str]) -> None:
        """Write a block after an empty line; items of a list follow without one."""
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
        if tag.name == "a":
            # A link ends where the next one begins.
            self._close_mark("a")
        if len(self._marks) >= limits.WEB_NESTING_MAX:
            return
        target = (html_tokens.attribute(tag, "href") or "").strip() if tag.name == "a" else ""
        shown = "" if _NO_TARGET.match(target) else target
        in_cell = self._cell() is not None
        self._marks.append(_Mark(tag.name, len(self._words), shown, in_cell))

    def _close_mark(self, name: str) -> None:
        # Close the outermost mark of its kind, so that nested bold text is marked once.
        index = next((at for at, mark in enumerate(self._marks) if mark.name == name), None)
        if index is None:
            return
        mark = self._marks[index]
        del self._marks[index:]
        before, words, after = _split_blanks("".join(self._words[mark.start :]))
        del self._words[mark.start :]
        self._words += (part for part in (before, _marked(mark, words), after) if part)
        if mark.target and mark.blocks and not mark.linked and not words:
            # It was around code alone, which cannot have a link.
            self._words.append(f"[{mark.target}]({mark.target})")
            self._end_block()

    def _picture(self, tag: Open) -> None:
        words = html_text.collapse_spaces(html_tokens.attribute(tag, "alt") or "").strip()
        source = (html_tokens.attribute(tag, "src") or "").strip()
        if source and not _NO_TARGET.match(source):
            self._words.append(f"![{words}]({source})")
            self._pictures.add(self._words[-1])
        elif words:
            self._words.append(words)

    def _end_code(self, code: CodeLines) -> None:
        self._code = None
        lines = code.lines()
        if not any(map(str.strip, lines)):
            return
        longest = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=2)
        fence = "`" * (longest + 1)
        self._block([f"{fence}{self._language}", *lines, fence])

    def _cell(self) -> _Table | None:
        """The table of the open cell."""
        table = self._tables[-1] if self._tables else None
        return table if table is not None and table.in_cell else None

    def _open_table(self) -> None:
        # A table that contains a table is a layout table.
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
        """Treat the open table as a layout table from here on."""
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
        self._end_marks()
        self._marks = [mark for mark in self._marks if not mark.in_cell]
        text = html_text.collapse_spaces("".join(self._words)).strip()
        self._words.clear()
        self._pictures.clear()
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


def _split_blanks(text: str) -> tuple[str, str, str]:
    """The blanks before the words, the words, and the blanks after them."""
    words = text.strip()
    start = len(text) - len(text.lstrip())
    return text[:start], words, text[start + len(words) :]


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
