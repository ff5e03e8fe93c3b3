"""What a model is asked when it is to name a conversation, and what of its answer is a title."""

import re
from typing import Final

from perdure.core import limits, title

_ASKED: Final = "Name the conversation that begins with this message:\n\n"
_THOUGHTS: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_LABEL: Final = re.compile(r"^\W*title\W*:\s*", re.IGNORECASE)
_AROUND: Final = " \t\"'`*_#“”«»„."


def text(prompt: str) -> str:
    """The request. Only the beginning of a prompt counts; the rest would be paid for in vain."""
    return f"{_ASKED}{prompt[: limits.TITLE_PROMPT_CHARS_MAX]}"


def from_answer(answer: str) -> str:
    """One line without what models put around it; empty when nothing of it is a title."""
    said = _THOUGHTS.sub("", answer)
    lines = (_LABEL.sub("", line).strip(_AROUND) for line in said.splitlines())
    return title.from_prompt(next((line for line in lines if line), ""))
