"""Code and documents use the words of CONTEXT.md, and few of those that hide who acts."""

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
VAGUE: Final = re.compile("nobody|somebody|whoever|everybody", re.IGNORECASE)
"""Words that do not say who acts: the server, the client, another process, the user, the model."""
VAGUE_MAX: Final = 15


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


def test_texts_say_who_acts() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in source_tree.committed_files()
        if path.is_relative_to(ROOT / "src")
        or path.is_relative_to(ROOT / "docs")
        or path == ROOT / "README.md"
        for number, line in enumerate(source_tree.text_of(path).splitlines(), start=1)
        if VAGUE.search(line)
    ]
    assert len(found) <= VAGUE_MAX, "\n".join([f"{len(found)} places", *found])


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
