"""Finds commands in any shell text, with the tree-sitter grammar for bash.

Imported by tools.shell.parser for text that core.shell.literal does not read. The items are for
people and for rules that deny: the grammar and shells differ, so the script is always unclear.
Text with syntax errors gives the items that are still found.
"""

import re
from collections.abc import Iterator
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from perdure.core.shell.command import Assignment, Redirection, Script, SimpleCommand
from perdure.core.shell.word import Word

_NOT_LITERAL: Final = "not all of its words are literal"

_WORDS: Final = frozenset(
    [
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "concatenation",
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
        "extglob_pattern",
        "regex",
        "variable_name",
        "special_variable_name",
    ]
)
_GLOB: Final = re.compile(r"[*?\[\]]")
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_STRING: Final = re.compile(r"\\([\n\"\\$`])")
_PARSER: Final = Parser(Language(tree_sitter_bash.language()))


def parse(text: str) -> Script:
    """Find the items of a script. Implements core.shell.command.Parse."""
    root = _PARSER.parse(text.encode(errors="replace")).root_node
    items = tuple(item for node in _walk(root) if (item := _item(node)) is not None)
    return Script(items, _NOT_LITERAL)


def _walk(root: Node) -> Iterator[Node]:
    """Every named node, in text order. Uses a stack, because nesting is unbounded."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


def _item(node: Node) -> SimpleCommand | Assignment | Redirection | None:
    match node.type:
        case "command":
            words = [_word(child) for child in node.named_children if _is_word(child)]
            return SimpleCommand(tuple(words)) if words else None
        case "declaration_command" | "unset_command":
            return Assignment(" ".join(map(_text, node.children)))
        case "variable_assignment" if not _is_declared(node):
            return Assignment(_text(node))
        case "for_statement" | "c_style_for_statement":
            name = node.child_by_field_name("variable")
            return None if name is None else Assignment(f"for {_text(name)}")
        case "file_redirect":
            return _redirection(node)
        case _:
            return None


def _redirection(node: Node) -> Redirection | None:
    targets = node.children_by_field_name("destination")
    if not targets:
        return None
    operator = next((child.type for child in node.children if not child.is_named), ">")
    return Redirection(operator, _word(targets[0]))


def _is_word(node: Node) -> bool:
    return node.type == "command_name" or node.type in _WORDS


def _is_declared(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "declaration_command"


def _word(node: Node) -> Word:
    return Word(_text(node), _literal(node))


def _literal(node: Node) -> str | None:
    """The value of a word, if it does not depend on expansion."""
    text = _text(node)
    match node.type:
        case "word" | "number":
            return _unescaped(text)
        case "raw_string":
            return text[1:-1]
        case "string" if text.startswith('"') and _is_plain_string(node):
            return _ESCAPED_IN_STRING.sub(lambda found: found[1].strip("\n"), text[1:-1])
        case "command_name":
            return _literal(node.named_children[0]) if node.named_child_count == 1 else None
        case "concatenation":
            return _joined(node)
        case _:
            return None


def _joined(node: Node) -> str | None:
    pieces = [_literal(child) for child in node.named_children]
    whole = "".join(piece for piece in pieces if piece is not None)
    written = sum(len(child.text or b"") for child in node.named_children)
    if None in pieces or written != len(node.text or b"") or _is_expanded(_text(node)):
        return None
    return whole


def _unescaped(text: str) -> str | None:
    if _is_expanded(_ESCAPED.sub("", text)):
        return None
    return _ESCAPED.sub(lambda found: found[1].strip("\n"), text)


def _is_expanded(text: str) -> bool:
    """Whether the shell makes other words of it: file names, or the alternatives in braces."""
    _, brace, rest = text.partition("{")
    return _GLOB.search(text) is not None or (bool(brace) and ("," in rest or ".." in rest))


def _is_plain_string(node: Node) -> bool:
    return all(child.type == "string_content" for child in node.named_children)


def _text(node: Node) -> str:
    return (node.text or b"").decode()
