"""What is unusual about a permission request, in words for the person who decides."""

import re
from collections.abc import Sequence
from typing import Final

from perdure.core.text.visible import make_visible
from perdure.schema.codec import JsonObject

_COMMENT: Final = re.compile(r"(?:^|[\s;&|(])#", re.MULTILINE)
_LONG_BLANK: Final = re.compile(r"[ \t]{16}")


def list_notes(
    resources: Sequence[str], metadata: JsonObject, diffs: Sequence[str] = ()
) -> list[str]:
    """One line for each thing that a reader could overlook."""
    text, changes = "\n".join(resources), "\n".join(diffs)
    notes: list[str] = []
    if metadata.get("sandbox") == "outside":
        notes.append("it runs outside the sandbox, with network and all of your files")
    if "workdir" in metadata:
        if (count := text.count("\n") + 1) > 1:
            notes.append(f"the command has {count} lines")
        if _COMMENT.search(text):
            notes.append("it has a comment; a line break in or after it may run more")
    if "unclear" in metadata:
        why = make_visible(str(metadata["unclear"])).replace("\n", " ")
        notes.append(f"it is not certain what it runs: {why}")
    if any(make_visible(it) != it.expandtabs() for it in (text, changes)):
        notes.append("it has characters that cannot be seen; here they are spelled out")
    if _LONG_BLANK.search(text):
        notes.append("it has long runs of blanks, with more text behind them")
    return notes
