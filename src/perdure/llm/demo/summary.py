"""The demo model's answer to a request for a summary.

It counts messages and repeats the latest prompts verbatim, in the requested sections.
core.compaction.summary_request defines how such a request begins; a test keeps the two in sync.
"""

import re
from typing import Final

from perdure.lazy_pattern import lazy_pattern

PROMPTS_SHOWN_MAX: Final = 5
PROMPT_CHARS_MAX: Final = 200

_REQUEST: Final = lazy_pattern(r"Write a checkpoint of the conversation below\.")
_PROMPT: Final = lazy_pattern(r"^\[User\]: (.*)", re.MULTILINE)
_ANSWER: Final = lazy_pattern(r"^\[Assistant\]: ", re.MULTILINE)


def is_asked(prompt: str) -> bool:
    return _REQUEST.match(prompt) is not None


def summary_of(prompt: str) -> str:
    """A checkpoint in the usual sections; deterministic."""
    prompts = _PROMPT.findall(prompt)
    latest = [f"- {said[:PROMPT_CHARS_MAX]}" for said in prompts[-PROMPTS_SHOWN_MAX:]] or ["- None"]
    counted = f"- {len(prompts)} prompts and {len(_ANSWER.findall(prompt))} answers came before."
    return "\n".join(
        (
            "It cannot sum up; this repeats the latest prompts.",
            "",
            "## Objective",
            "- Not known",
            "",
            "## Important Details",
            *latest,
            "",
            "## Work State",
            "### Completed",
            counted,
            "### Active",
            "- None",
            "### Blocked",
            "- None",
            "",
            "## Next Move",
            "- Not known",
            "",
            "## Relevant Files",
            "- None",
        )
    )
