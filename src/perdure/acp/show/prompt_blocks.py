"""The blocks of a prompt as a prompt of the contract: its text, and its attachments."""

import base64
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from perdure.acp.schema.content import (
    AudioBlock,
    ContentBlock,
    EmbeddedResource,
    ImageBlock,
    Resource,
    ResourceLink,
    TextBlock,
)
from perdure.acp.wire.rpc_error import invalid
from perdure.schema.session.prompt import FileInput, PromptInput
from perdure.schema.value import Value

_ATTACHED: Final = ("file:", "data:")
_TEXT: Final = "text/plain"


class CommandLine(Value):
    """A prompt that begins with a slash and a word."""

    name: str
    arguments: str


def read_prompt(blocks: Sequence[ContentBlock]) -> PromptInput:
    """Raises RpcError for blocks that say nothing, and for those that were not offered."""
    texts: list[str] = []
    files: list[FileInput] = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                texts.append(text)
            case ImageBlock(data=data, mime_type=mime):
                files.append(FileInput(uri=f"data:{mime};base64,{data}", name="image"))
            case ResourceLink(uri=uri, name=name):
                if uri.startswith(_ATTACHED):
                    files.append(FileInput(uri=uri, name=name))
                else:
                    # Only files are read; the model may open an address with its tools.
                    texts.append(f"[{name}]({uri})")
                    continue
                texts.append(f"@{name}")
            case EmbeddedResource(resource=resource):
                files.append(_embedded(resource))
                texts.append(f"@{_name_of(resource)}")
            case AudioBlock():
                raise invalid("Audio is not taken; `promptCapabilities` says what is")
    text = "".join(texts)
    if not text.strip() and not files:
        raise invalid("The prompt is empty")
    return PromptInput(text=text, files=tuple(files) if files else UNSET)


def find_command(prompt: PromptInput) -> CommandLine | None:
    """The slash command that a prompt may be."""
    if not prompt.text.startswith("/"):
        return None
    name, *rest = prompt.text[1:].split(maxsplit=1) or [""]
    return CommandLine(name, rest[0] if rest else "") if name else None


def _embedded(resource: Resource) -> FileInput:
    """The content comes along: an editor may have text that is not saved."""
    if resource.blob is not UNSET:
        mime, data = resource.mime_type or "application/octet-stream", resource.blob
    elif resource.text is not UNSET:
        mime = resource.mime_type or _TEXT
        if not mime.startswith("text/"):
            mime = _TEXT
        data = base64.b64encode(resource.text.encode()).decode()
    else:
        raise invalid(f"The resource {resource.uri[:200]!r} has neither `text` nor `blob`")
    return FileInput(uri=f"data:{mime};base64,{data}", name=_name_of(resource))


def _name_of(resource: Resource) -> str:
    """The path of a file, else the address."""
    return resource.uri.removeprefix("file://")
