"""The blocks of a prompt: what becomes text, what is attached, what is refused."""

import pytest

from perdure.acp.schema.content import (
    AudioBlock,
    ContentBlock,
    EmbeddedResource,
    ImageBlock,
    Resource,
    ResourceLink,
    TextBlock,
)
from perdure.acp.show.prompt_blocks import CommandLine, find_command, read_prompt
from perdure.acp.wire.rpc_error import RpcError
from perdure.schema.session.prompt import FileInput, PromptInput


def test_texts_are_joined_as_they_stand() -> None:
    prompt = read_prompt([TextBlock("see "), TextBlock("this")])
    assert prompt == PromptInput(text="see this")


@pytest.mark.parametrize(
    ("block", "text", "file"),
    [
        (
            ImageBlock("AAAA", "image/png"),
            "",
            FileInput(uri="data:image/png;base64,AAAA", name="image"),
        ),
        (
            ResourceLink("file:///p/a b.txt", "a b.txt"),
            "@a b.txt",
            FileInput(uri="file:///p/a b.txt", name="a b.txt"),
        ),
        (
            EmbeddedResource(Resource("file:///p/x.rs", "text/rust", text="fn")),
            "@/p/x.rs",
            FileInput(uri="data:text/rust;base64,Zm4=", name="/p/x.rs"),
        ),
        (
            EmbeddedResource(Resource("file:///p/x.json", "application/json", text="{}")),
            "@/p/x.json",
            FileInput(uri="data:text/plain;base64,e30=", name="/p/x.json"),
        ),
        (
            EmbeddedResource(Resource("zed:///rule", blob="AAAA")),
            "@zed:///rule",
            FileInput(uri="data:application/octet-stream;base64,AAAA", name="zed:///rule"),
        ),
    ],
)
def test_what_an_editor_adds_is_attached(block: ContentBlock, text: str, file: FileInput) -> None:
    assert read_prompt([block]) == PromptInput(text=text, files=(file,))


def test_an_address_is_named_and_not_read() -> None:
    prompt = read_prompt([ResourceLink("https://example.org/", "page")])
    assert prompt == PromptInput(text="[page](https://example.org/)")


@pytest.mark.parametrize(
    "blocks",
    [[], [TextBlock("  \n")], [AudioBlock("AA", "audio/wav")], [EmbeddedResource(Resource("x:"))]],
)
def test_a_prompt_that_says_nothing_is_refused(blocks: list[ContentBlock]) -> None:
    with pytest.raises(RpcError) as raised:
        read_prompt(blocks)
    assert raised.value.code == -32602


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/review", CommandLine("review", "")),
        ("/review the  tests\nnow", CommandLine("review", "the  tests\nnow")),
        ("/", None),
        ("say /review", None),
        ("", None),
    ],
)
def test_a_command_is_a_slash_and_a_word(text: str, line: CommandLine | None) -> None:
    assert find_command(PromptInput(text=text)) == line
