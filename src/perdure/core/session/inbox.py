"""The Session inbox: prompts admitted but not yet part of Session History.

Admission and promotion are separate durable facts. This module decides what an admission stores,
whether a retry is the same, and which pending prompts a Safe Provider-Turn Boundary promotes; it
never writes. A prompt is promoted at most once, and steering never promotes past the cutoff.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET

from perdure.core import limits
from perdure.core.files import mime
from perdure.schema.errors import InvalidRequestError, PromptConflictError
from perdure.schema.ids import Seq
from perdure.schema.session.prompt import FileAttachment, FileInput, Prompt, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt

Promotion = Literal["steer", "queue", "none"]
"""What a boundary promotes: pending steers; the next queued prompt, then steers; or nothing."""


def admit(given: PromptInput) -> Prompt:
    """The prompt as it is stored: checked for size, with the media type of each file."""
    if len(given.text.encode()) > limits.PROMPT_TEXT_BYTES_MAX:
        raise InvalidRequestError(
            f"Prompt text is larger than {limits.PROMPT_TEXT_BYTES_MAX} bytes",
            kind="Payload",
            field="prompt.text",
        )
    files = UNSET if given.files is UNSET else tuple(_attachment(file) for file in given.files)
    return Prompt(text=given.text, files=files, agents=given.agents)


def reconcile(stored: AdmittedPrompt, asked: AdmittedPrompt) -> AdmittedPrompt:
    """The stored receipt, if the retry asks for the same; else PromptConflictError."""
    same = (stored.session_id, stored.prompt, stored.delivery) == (
        asked.session_id,
        asked.prompt,
        asked.delivery,
    )
    if not same:
        raise PromptConflictError(asked.id)
    return stored


def select_promotions(
    promotion: Promotion,
    *,
    steers: Sequence[AdmittedPrompt],
    queued: AdmittedPrompt | None,
    cutoff: Seq,
) -> tuple[AdmittedPrompt, ...]:
    """Which prompts this boundary promotes, in the order they enter history."""
    if promotion == "none":
        return ()
    joined = tuple(prompt for prompt in steers if prompt.admitted_seq <= cutoff)
    if promotion == "queue" and queued is not None:
        return (queued, *joined)
    return joined


def _attachment(file: FileInput) -> FileAttachment:
    name = None if file.name is UNSET else file.name
    return FileAttachment(
        uri=file.uri,
        mime=mime.attachment_type(file.uri, name),
        name=file.name,
        description=file.description,
        source=file.source,
    )
