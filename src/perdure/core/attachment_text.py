"""How a model is told of what a person attached: headings, cut marks, and what was left out."""

from perdure.core import limits


def titled(kind: str, name: str, text: str) -> str:
    return f"Attached {kind} {one_line(name)}:\n{text}"


def left_out(name: str, why: str) -> str:
    return f"[Attachment left out: {one_line(name)}: {why}]"


def bounded(text: str, bytes_max: int = limits.READ_BYTES_MAX) -> str:
    """As much of the text as may be told at once, with a mark where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    kept = data[:bytes_max].decode("utf-8", "ignore")
    return f"{kept}\n[Cut here: {len(data) - bytes_max} more bytes]"


def one_line(text: str) -> str:
    return " ".join(text.split())[:200] or "a file"
