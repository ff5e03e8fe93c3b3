"""Text between tags, the way models read lists: what comes from outside cannot end its tag."""

from perdure.core import limits


def element(tag: str, text: str) -> str:
    return f"<{tag}>{escaped(text)}</{tag}>"


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(description: str) -> str:
    """A description as it is told again and again: one line, and not too long."""
    line = " ".join(description.split())
    most = limits.CONTEXT_DESCRIPTION_CHARS_MAX
    return line if len(line) <= most else f"{line[: most - 1]}…"
