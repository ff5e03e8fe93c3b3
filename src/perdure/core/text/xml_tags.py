"""Text between tags, the way models read lists: what comes from outside cannot end its tag."""

from collections.abc import Iterable, Mapping

from perdure.core import limits


def element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>"


def list_available(kind: str, entries: Iterable[Mapping[str, str]]) -> str:
    """What there is of a kind: an element for each, with an element for each of its fields."""
    listed = "".join(f"  <{kind}>\n{_fields(entry)}  </{kind}>\n" for entry in entries)
    return f"<available_{kind}s>\n{listed}</available_{kind}s>"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(description: str) -> str:
    """A description as it is told again and again: one line, and not too long."""
    line = " ".join(description.split())
    most = limits.CONTEXT_DESCRIPTION_CHARS_MAX
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _fields(entry: Mapping[str, str]) -> str:
    return "".join(f"    {element(tag, text)}\n" for tag, text in entry.items())
