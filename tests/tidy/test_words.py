"""The code speaks the language of CONTEXT.md, and not the words that it warns against."""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from typing import Final

import pytest

from tests.tidy import source_tree
from tests.tidy.source_tree import ROOT

AVOIDED: Final = (
    "system prompt",
    "remote client",
    "response envelope",
    "prompt fragment",
    "system notification",
    "local implementation",
    "wire options",
)
CONTEXT: Final = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")
PERHAPS: Final = re.compile(
    "|".join(avoided.replace(" ", r"[\s_\-\\]*") for avoided in AVOIDED), re.IGNORECASE
)
"""Where this is not found, no spelling of an avoided word can be."""


def test_no_identifier_or_comment_uses_an_avoided_word() -> None:
    found = [
        f"{module.name}:{line} says {avoided!r}"
        for module in source_tree.modules()
        if PERHAPS.search(module.text)
        for line, words in spoken(module.text)
        for avoided in AVOIDED
        if avoided in words
    ]
    assert found == []


@pytest.mark.parametrize("avoided", AVOIDED)
def test_the_glossary_warns_against_each_avoided_word(avoided: str) -> None:
    assert avoided in CONTEXT.lower()


@pytest.mark.parametrize(
    "source",
    ["SystemPrompt = 1", "system_prompt = 1", "# the system prompt", "def systemPrompt(): pass"],
)
def test_the_search_sees_every_spelling_of_a_word(source: str) -> None:
    assert PERHAPS.search(source)
    assert any("system prompt" in words for _, words in spoken(source))


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Names, comments and docstrings as lower-case words; other strings are data, not speech."""
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type in {tokenize.NAME, tokenize.COMMENT}:
            yield token.start[0], as_words(token.string)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), as_words(text)


def as_words(text: str) -> str:
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[\s_\-]+", " ", split).lower()
