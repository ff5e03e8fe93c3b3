"""The Session inbox: prompts admitted but not yet part of Session History.

Admission and promotion are separate durable facts. This module decides what an admission stores,
whether a retry is the same, and which pending prompts a Safe Provider-Turn Boundary promotes; it
never writes. A prompt is promoted at most once, and steering never promotes past the cutoff.
"""

from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import UNSET

from perdure.core import limits
from perdure.schema.errors import InvalidRequestError, PromptConflictError
from perdure.schema.ids import Seq
from perdure.schema.session.prompt import FileAttachment, FileInput, Prompt, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt

Promotion = Literal["steer", "queue", "none"]
"""What a boundary promotes: pending steers; the next queued prompt, then steers; or nothing."""

_OCTETS: Final = "application/octet-stream"
_MIME_BY_EXTENSION: Final = {
    "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html",
    "htm": "text/html", "css": "text/css", "xml": "text/xml", "js": "text/javascript",
    "mjs": "text/javascript", "ts": "text/x-typescript", "tsx": "text/x-typescript",
    "jsx": "text/javascript", "py": "text/x-python", "rs": "text/x-rust", "go": "text/x-go",
    "c": "text/x-c", "h": "text/x-c", "cpp": "text/x-c++", "java": "text/x-java",
    "sh": "text/x-shellscript", "toml": "text/x-toml", "ini": "text/plain", "log": "text/plain",
    "yaml": "text/yaml", "yml": "text/yaml", "sql": "text/x-sql", "json": "application/json",
    "jsonc": "application/json", "pdf": "application/pdf", "zip": "application/zip",
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "svg": "image/svg+xml", "bmp": "image/bmp", "avif": "image/avif",
    "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm",
}  # fmt: skip


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


def mime_of(uri: str, name: str | None) -> str:
    """The media type, from the data URI itself, a trailing slash, or the extension."""
    if uri.startswith("data:"):
        head = uri[5:].partition(",")[0].partition(";")[0].strip().lower()
        return head or "text/plain"
    path = _path(uri)
    if path.endswith("/"):
        return "application/x-directory"
    for candidate in (path, name or ""):
        _, dot, extension = candidate.rpartition("/")[2].rpartition(".")
        if dot and extension.lower() in _MIME_BY_EXTENSION:
            return _MIME_BY_EXTENSION[extension.lower()]
    return _OCTETS


def _attachment(file: FileInput) -> FileAttachment:
    name = None if file.name is UNSET else file.name
    return FileAttachment(
        uri=file.uri,
        mime=mime_of(file.uri, name),
        name=file.name,
        description=file.description,
        source=file.source,
    )


def _path(uri: str) -> str:
    try:
        return urlsplit(uri).path or uri
    except ValueError:
        return uri
