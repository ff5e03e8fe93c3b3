"""Parses shell text with the tree-sitter grammar for bash into values of core.shell.command.

Imported by tools.shell.parser when a command is first parsed. Known node kinds are listed; an
unknown one, or text in which the grammar misses a substitution, makes the script unclear.
core.shell.command decides what the items mean for permissions.

Invariant: each simple command, assignment and redirection to a file becomes an item, however
deeply nested, or the script is unclear.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from perdure.core.shell.command import Assignment, Redirection, Script, SimpleCommand
from perdure.core.shell.word import Word

_NOT_UNDERSTOOD: Final = "its text is not understood"

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
_TRANSPARENT: Final = frozenset(
    [
        "program",
        "list",
        "pipeline",
        "subshell",
        "compound_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "while_statement",
        "for_statement",
        "c_style_for_statement",
        "do_group",
        "case_statement",
        "case_item",
        "function_definition",
        "negated_command",
        "redirected_statement",
        "test_command",
        "command",
        "command_name",
        "declaration_command",
        "unset_command",
        "variable_assignment",
        "variable_assignments",
        "array",
        "subscript",
        "binary_expression",
        "unary_expression",
        "ternary_expression",
        "postfix_expression",
        "parenthesized_expression",
        "test_operator",
        "string_content",
        "file_redirect",
        "file_descriptor",
        "heredoc_redirect",
        "heredoc_start",
        "heredoc_body",
        "heredoc_content",
        "heredoc_end",
        "herestring_redirect",
        "comment",
    ]
)
_NOT_READ: Final = frozenset({"raw_string", "ansi_c_string", "comment"})
"""Node kinds in which the shell expands nothing."""
_SUBSTITUTION: Final = re.compile(r"`|\$\(|[<>]\(")
_GLOB: Final = re.compile(r"[*?\[\]]")
_MISREAD: Final = re.compile(r"\S\\\n\S|\n\\|\$\s|[\x00-\x08\x0b-\x1f\x7f]")
"""Text that the grammar splits into other words than a shell: a word continued on the next line, a
line that begins with an escape, text after a lone dollar, and control characters as blanks."""
_EVALUATED_INDEX: Final = re.compile(r"\[\s*(?:`|\$\()")
"""Arithmetic runs commands in the index of an array, even from quoted text."""
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_STRING: Final = re.compile(r"\\([\n\"\\$`])")
_PARSER: Final = Parser(Language(tree_sitter_bash.language()))


def parse(text: str) -> Script:
    """Parse a script. Implements core.shell.command.Parse."""
    try:
        source = text.encode()
    except UnicodeEncodeError:
        return Script(unclear=_NOT_UNDERSTOOD)
    root = _PARSER.parse(source).root_node
    if root.has_error or _MISREAD.search(text):
        return Script(unclear=_NOT_UNDERSTOOD)
    nodes = list(_walk(root))
    understood = all(map(_is_understood, nodes))
    items = tuple(item for node in nodes if (item := _item(node)) is not None)
    return Script(items, None if understood else _NOT_UNDERSTOOD)


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
    operator = next(child.type for child in node.children if not child.is_named)
    return Redirection(operator, _word(targets[0]))


def _is_understood(node: Node) -> bool:
    kind = node.type
    if kind not in _WORDS and kind not in _TRANSPARENT:
        return False
    if kind == "file_redirect" and len(node.children_by_field_name("destination")) > 1:
        # The grammar parses arguments after a redirection as further files.
        return False
    if kind == "heredoc_redirect" and any(map(_is_word, node.named_children)):
        return False
    if kind == "command" and not _has_separate_words(node):
        return False
    if kind == "raw_string" and _EVALUATED_INDEX.search(_text(node)):
        return False
    hidden = not node.named_children and kind not in _NOT_READ and not _is_quoted_heredoc(node)
    return not (hidden and _SUBSTITUTION.search(_text(node)))


def _has_separate_words(command: Node) -> bool:
    """Whether it has words with a blank between any two: the grammar splits some words."""
    kinds = [child for child in command.named_children if child.type != "file_redirect"]
    touching = any(one.end_byte == other.start_byte for one, other in pairwise(kinds))
    return any(map(_is_word, kinds)) and not touching


def _is_quoted_heredoc(node: Node) -> bool:
    if node.type != "heredoc_body" or node.parent is None:
        return False
    starts = [child for child in node.parent.named_children if child.type == "heredoc_start"]
    return bool(starts) and all(re.search(r"['\"\\]", _text(start)) for start in starts)


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
