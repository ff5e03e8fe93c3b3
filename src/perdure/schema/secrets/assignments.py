"""Fields with a name and a value: `name=value`, `"name": "value"`, `<name>value</name>`.

The same rules serve environment files, INI, YAML, JSON, TOML, XML, queries, forms, headers,
connection strings and source code: a name, a sign between, and a value whose end depends on what
stands around the field.
"""

import re
from typing import Final

from perdure.schema.secrets import names, tokens, values
from perdure.schema.secrets.names import Certainty
from perdure.schema.secrets.values import REDACTED, Place, Span

FIELD: Final = (
    r"(?:(?<![\w.-])|(?<=%[0-9A-Fa-f]{2}))(?P<name>[^\W\d][\w.-]{0,199}+)"
    r"(?:(?:(?P<quote>\\*+[\"'`]|%22)[\])]?+)?+[ \t]{0,8}+"
    r"(?P<sign>=>|:=|\?=|[!=]?={1,3}|:(?!//)|>|%3[aAdD])(?:%22)?[ \t]{0,8}+"
    # On a line of its own only a value in quotes is taken for the value of this name.
    r"(?:(?:\r?\n|\\n)[ \t]{0,80}+(?=\\*+[\"']))?+"
    r"|(?P<comma>\\?[\"']\s{0,4},\s{0,20}+)(?=[bu]?\\?[\"']))"
    r"(?=\S)"
)
"""A name, and what stands between it and its value."""
ELEMENT: Final = r"<(?P<tag>[A-Za-z_][\w.:-]{0,99}+)\s[^<>]{0,300}+>(?=[^<\s]|<!\[CDATA)"
"""The opening tag of an element with attributes."""

_NAMING: Final = names.words(
    "name key id parameterkey parametername field variable header property"
)
"""Names of fields that hold the name of another, whose value is beside: `name: X, value: Y`."""
_PAIRED: Final = re.compile(
    r"[\"'`\\]{0,4}[\s,;]{1,40}(?:[\w-]{1,40}=[\"'][^\"'<>\n]{0,40}[\"']\s{1,4}){0,3}[\"'\\]{0,4}"
    r"(?i:(?:parameter|default|string|secret)?_?value|content|default)[\"'\\]{0,4}"
    r"\s{0,4}[=:]\s{0,4}(?=\S)"
)
_LINE_BREAK: Final = r"(?:\r?\n|(?:\\r)?\\n)"
_FORM_PART: Final = re.compile(
    rf"\\?[\"']?(?:[^\r\n]{{0,80}}?{_LINE_BREAK}){{1,4}}?{_LINE_BREAK}(?=[^\r\n])"
)
_FORM_VALUE: Final = re.compile(r"(?:[^\r\n\\]|\\(?![rn]))++")
_SETTER: Final = re.compile(r"(?i:define|set|put|add|append|header)\w{0,30}\(\s{0,4}\\?[\"']\Z")
_FIRST_OF_TWO: Final = re.compile(r"[\[(]\s{0,4}[bu]?\\?[\"']\Z")
_SETTER_CHARS: Final = 40
_LEAD: Final = re.compile(
    r"[ \t]*+(?:- |export[ \t]+|set[ \t]+|declare -x[ \t]+|ENV[ \t]+|ARG[ \t]+)?[$@:/\w.\[-]*+"
)
_LEAD_CHARS_MAX: Final = 80
_WORD_BEFORE: Final = re.compile(r"([A-Za-z]{2,20}) \Z")
_BLOCK: Final = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?=\r?\n)")
_LIST: Final = re.compile(r"\[(?!redacted\])[^\[\]]*+")
_OBJECT: Final = re.compile(r"\{(?!\{|(?:env|file):)[^{}]*+")
_TYPE: Final = re.compile(
    r"(?:Optional\[)?(?:str|string|String|bytes|SecretStr|Secret|&str|\[\]byte|text|varchar)\]?"
    r"(?:\s?\|\s?(?:None|null|undefined))?(?=[\s,;)=\]}?]|\Z)(?P<value>\s{0,4}=\s{0,4}(?=\S))?"
)
_REFERENCE: Final = re.compile(r"\$?\{\{[^{}]{0,200}\}\}|\$\{[^{}]{0,200}\}")
_NO_SECRET: Final = re.compile(
    r"\s*+|[*xX]{3,}+|\.{3}|…|-++"
    # References to a value that is elsewhere.
    r"|\$[A-Z_][A-Z0-9_]*+|\{(?:env|file):[^{}]*+\}|%[A-Z_][A-Z0-9_]*+%"
    r"|<[A-Za-z][\w -]*+>?"
    r"|(?:process\.env|os\.environ|os\.getenv|import\.meta\.env|env|ENV|var|secrets?)"
    r"[.\[(][\w.\[\]()\"']*+"
)
_PLAIN_WORDS: Final = names.words(
    """
    true false null none nil undefined yes no on off required optional missing empty unset default
    hidden string number boolean object array any bool int float type
    a an and are as at be but by can cannot could does expected expired failed for from has have if
    in incorrect invalid is it its may must need needs never not of only or please revoked see
    should than that the this to too unexpected unknown unsupported use used was were when which
    will with without would wrong you your
    """
)
_PLAIN_VALUE: Final = re.compile(r"[a-z][a-z_ -]*+|[A-Z][a-z]++|[0-9]{1,5}(?:\.[0-9]++)?")
_UNSURE_CHARS_MAX: Final = 200
"""How much is read of the value of a name that is no secret by itself."""
_KEY_PARTS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
"""Members of a JSON Web Key that are private."""
_KEY_PART: Final = re.compile(r"[\w-]{32,}+=*+")


def find_in_field(text: str, found: re.Match[str]) -> Span:
    """The secret of a field; an empty span at the place to go on if there is none."""
    name, at = found["name"], found.end()
    if name.lower() in _NAMING and (pair := _find_paired(text, at)) is not None:
        return pair
    certainty = _classify(text, found)
    if certainty == "none":
        return at, at
    if found["comma"] is not None:
        before = text[max(0, found.start() - _SETTER_CHARS) : found.start()]
        is_header = names.is_header(name) and _FIRST_OF_TWO.search(before) is not None
        is_pair = is_header or _SETTER.search(before) is not None
        return check(text, at, "field", certainty) if is_pair else (at, at)
    if (inner := _find_composite(text, found)) is not None:
        return inner
    if (annotation := _TYPE.match(text, at)) is not None:
        at = annotation.end()
        if annotation["value"] is None:
            return at, at
    return _find_value(text, found, at, certainty)


def find_in_element(text: str, found: re.Match[str]) -> Span:
    """The secret of an element; without one the scan goes on in its attributes."""
    name = found["tag"].rpartition(":")[2]
    if (certainty := names.classify(name)) == "none":
        return found.end("tag"), found.end("tag")
    return check(text, found.end(), "element", certainty)


def check(text: str, at: int, place: Place, certainty: Certainty = "secret") -> Span:
    """The span of the value at `at` if it is a secret, else an empty one where to go on."""
    if (reference := _REFERENCE.match(text, at)) is not None:
        return reference.end(), reference.end()
    limit = len(text) if certainty == "secret" else at + _UNSURE_CHARS_MAX
    start, end = values.find_value(text, at, place, limit)
    # In quotes, and after the name of a header, a sentence is a value.
    prose = start == at and place != "header"
    if not is_secret(text[start:end], certainty, prose=prose):
        # A value of many words may have a field in it.
        return (end, end) if text[start:end] == REDACTED else (start, start)
    return values.find_value(text, at, place) if end >= limit else (start, end)


def is_secret(value: str, certainty: Certainty = "secret", *, prose: bool = True) -> bool:
    """Whether the value of a field is a secret, not a reference, a placeholder or a plain word."""
    if value == REDACTED or _NO_SECRET.fullmatch(value) is not None:
        return False
    first = value.partition(" ")[0] if prose else value
    if first.rstrip(".,:;!?").lower() in _PLAIN_WORDS:
        return False
    if certainty == "weak":
        return tokens.looks_random(value)
    return certainty == "secret" or _PLAIN_VALUE.fullmatch(value) is None


def _classify(text: str, found: re.Match[str]) -> Certainty:
    name = found["name"]
    if name in _KEY_PARTS:
        start, end = values.find_value(text, found.end(), "field", found.end() + _UNSURE_CHARS_MAX)
        is_part = found["quote"] and _KEY_PART.fullmatch(text, start, end) is not None
        return "secret" if is_part else "none"
    certainty = names.classify(name)
    if certainty == "none" and _is_after_escape(text, found.start()):
        certainty = names.classify(name[1:])
    if certainty in {"weak", "likely"} and _is_query(text, found):
        return "secret"
    if name.lower() in {"key", "keys"}:
        before = _WORD_BEFORE.search(text, max(0, found.start() - 21), found.start())
        return "secret" if before and names.may_be_key(before[1]) else certainty
    return certainty


def _find_value(text: str, found: re.Match[str], at: int, certainty: Certainty) -> Span:
    name, start, sign = found["name"], found.start(), found["sign"]
    before = text[start - 1 : start]
    if sign == ">":
        is_element = before in {"<", ":"} and found.end("name") + 1 == at
        return check(text, at, "element", certainty) if is_element else (at, at)
    if sign.startswith("%"):
        return check(text, at, "encoded", certainty)
    if before in {'"', "'", "`"} and not found["quote"]:
        # The quotes are around the whole field, so they end its value.
        lead = text[max(0, start - 9) : start - 1]
        end = values.find_closing(text, at, len(lead) - len(lead.rstrip("\\")), before)
        return (at, end) if is_secret(text[at:end], certainty) else (at, at)
    if sign == ":" and names.is_header(name) and not found["quote"]:
        return check(text, at, "header", certainty)
    if _is_query(text, found):
        return check(text, at, "query", certainty)
    is_line = sign in {"=", ":"} and not found["quote"] and certainty == "secret"
    is_line = is_line and _begins_line(text, start)
    return check(text, at, "line" if is_line else "field", certainty)


def _find_composite(text: str, found: re.Match[str]) -> Span | None:
    """The secret of a block of lines, a list or an object; None for a single value."""
    at, opener = found.end(), text[found.end()]
    if found["sign"] == ":" and (block := _BLOCK.match(text, at)) is not None:
        line = text.rfind("\n", 0, found.start()) + 1
        lead = text[line : found.start()]
        end = values.find_block_end(text, block.end(), len(lead) - len(lead.lstrip()))
        return _inner_span(text, block.end(), end)
    if opener == "[" and (items := _LIST.match(text, at)) is not None:
        return _inner_span(text, at + 1, items.end())
    if opener == "{" and (members := _OBJECT.match(text, at)) is not None:
        is_container = names.is_container(found["name"])
        return _inner_span(text, at + 1, members.end()) if is_container else (at, at)
    return None


def _inner_span(text: str, start: int, end: int) -> Span:
    """The span without the blanks around it; empty if it holds nothing but redacted text."""
    body = text[start:end]
    if body.strip() in {"", REDACTED}:
        return end, end
    return start + len(body) - len(body.lstrip()), start + len(body.rstrip())


def _find_paired(text: str, at: int) -> Span | None:
    """The value beside a field that holds a name, if it is the name of a secret."""
    start, end = values.find_value(text, at, "field", at + _UNSURE_CHARS_MAX)
    if not names.is_secret_name(text[start:end]):
        return None
    if (paired := _PAIRED.match(text, end)) is not None:
        span = check(text, paired.end(), "line")
        return span if span[0] < span[1] else None
    part = _FORM_PART.match(text, end)
    value = part and _FORM_VALUE.match(text, part.end())
    return value.span() if value and is_secret(value[0]) else None


def _is_query(text: str, found: re.Match[str]) -> bool:
    before = text[found.start() - 1 : found.start()]
    return found["sign"] == "=" and before in {"?", "&", "#"}


def _is_after_escape(text: str, start: int) -> bool:
    """Whether the first letter of a name belongs to `\\n` or the like before it."""
    return text[start - 1 : start] == "\\" and text[start] in "nrt"


def _begins_line(text: str, start: int) -> bool:
    lead = text[max(0, start - _LEAD_CHARS_MAX) : start]
    line = lead[max(lead.rfind("\n"), lead.rfind("\r")) + 1 :]
    return len(line) < _LEAD_CHARS_MAX and _LEAD.fullmatch(line) is not None
