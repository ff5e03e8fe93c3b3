"""XML-like tags for texts to the model. Content is escaped, so that it cannot close its tag."""

from collections.abc import Iterable, Mapping

from perdure.core import limits
from perdure.llm.encoding.shared import escape_markup


def element(tag: str, text: str) -> str:
    return f"<{tag}>{escape_markup(text)}</{tag}>"


def list_available(kind: str, entries: Iterable[Mapping[str, str]]) -> str:
    """The list of available items of a kind, with an element for each field."""
    listed = "".join(f"  <{kind}>\n{_fields(entry)}  </{kind}>\n" for entry in entries)
    return f"<available_{kind}s>\n{listed}</available_{kind}s>"


def one_line(description: str) -> str:
    """A description shortened to one line of limited length."""
    line = " ".join(description.split())
    most = limits.CONTEXT_DESCRIPTION_CHARS_MAX
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _fields(entry: Mapping[str, str]) -> str:
    return "".join(f"    {element(tag, text)}\n" for tag, text in entry.items())
