"""Renders an OpenAPI document as one page of HTML: every operation and every schema.

Pure. The page uses no script, no other file and no other server, and its security policy forbids
them. All text of the document is escaped.
"""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import Final, NotRequired, TypedDict

from perdure.schema import codec

Schema = TypedDict(
    "Schema",
    {
        "$ref": str,
        "type": object,
        "items": "Schema",
        "properties": "dict[str, Schema]",
        "oneOf": "list[Schema]",
        "anyOf": "list[Schema]",
        "const": object,
        "enum": list[object],
    },
    total=False,
)
"""A JSON Schema, with the words that are looked at here."""


class Media(TypedDict, total=False):
    schema: Schema


class Content(TypedDict, total=False):
    """A request body or an answer."""

    description: str
    content: dict[str, Media]


Parameter = TypedDict("Parameter", {"name": str, "in": str, "required": bool, "schema": Schema})


class Operation(TypedDict):
    operationId: str
    tags: list[str]
    parameters: list[Parameter]
    requestBody: NotRequired[Content]
    responses: dict[str, Content]


class Info(TypedDict):
    title: str
    version: str


class Components(TypedDict):
    schemas: dict[str, Schema]


class Document(TypedDict):
    """An OpenAPI document, with what the page shows of it."""

    info: Info
    paths: dict[str, dict[str, Operation]]
    components: Components


_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem }
h2 { border-bottom: 1px solid; margin-top: 3rem }
h3 { margin: 2rem 0 .25rem; overflow-wrap: anywhere }
code, pre { font: 14px/1.45 ui-monospace, monospace }
pre { border: 1px solid; border-radius: 4px; overflow-x: auto; padding: .75rem }
table { border-collapse: collapse; margin: .5rem 0; width: 100% }
th, td { border: 1px solid; padding: .25rem .6rem; text-align: left; vertical-align: top }
nav ul { columns: 3 14rem; list-style: none; padding: 0 }
"""
STYLE_ELEMENT: Final = f"<style>{_STYLE}</style>"
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_REF: Final = "#/components/schemas/"


def render(document: Document) -> str:
    title = f"{document['info']['title']} {document['info']['version']}"
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    groups = dict.fromkeys(operation["tags"][0] for _, _, operation in operations)
    parts = [_opening(title), _contents(groups)]
    for group in groups:
        parts.append(f'<h2 id="{escape(group)}">{escape(group)}</h2>')
        parts += [_operation(*item) for item in operations if item[2]["tags"][0] == group]
    parts.append('<h2 id="schemas">Schemas</h2>')
    parts += [_schema(*item) for item in sorted(document["components"]["schemas"].items())]
    parts.append("</main></body></html>")
    return "\n".join(parts)


def _opening(title: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>{STYLE_ELEMENT}</head>"
        f"<body><main><h1>{escape(title)}</h1>"
        '<p>The same as a document: <a href="/openapi.json">openapi.json</a></p>'
    )


def _contents(groups: Iterable[str]) -> str:
    links = (f'<li><a href="#{escape(g)}">{escape(g)}</a></li>' for g in (*groups, "schemas"))
    return f"<nav><ul>{''.join(links)}</ul></nav>"


def _operation(method: str, path: str, operation: Operation) -> str:
    name = escape(operation["operationId"])
    parts = [
        f'<section id="{name}"><h3><code>{escape(method.upper())} {escape(path)}</code></h3>',
        f'<p><a href="#{name}">{name}</a></p>',
    ]
    if operation["parameters"]:
        parts.append(_table(("parameter", "in", "type"), map(_parameter, operation["parameters"])))
    if "requestBody" in operation:
        parts.append(_table(("body", "type"), _contents_of(operation["requestBody"])))
    rows = (
        [escape(status), escape(answer.get("description", "")), " ".join(kind for _, kind in shown)]
        for status, answer in operation["responses"].items()
        for shown in [list(_contents_of(answer))]
    )
    parts.append(_table(("status", "meaning", "body"), rows))
    return "".join((*parts, "</section>"))


def _parameter(parameter: Parameter) -> list[str]:
    needed = "" if parameter["required"] else " (optional)"
    name = f"<code>{escape(parameter['name'])}</code>{needed}"
    return [name, escape(parameter["in"]), _type(parameter["schema"])]


def _contents_of(holder: Content) -> Iterable[list[str]]:
    for media, content in holder.get("content", {}).items():
        yield [escape(media), _type(content.get("schema", {}))]


def _type(schema: Schema) -> str:
    """A link where the shape has a name; else its JSON, or its outline where that is long."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REF))
        return f'<a href="#schema-{name}">{name}</a>'
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "properties" in schema:
        fields = (f"{escape(k)}: {_type(v)}" for k, v in schema["properties"].items())
        return f"{{{', '.join(fields)}}}"
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(map(_type, choices))
    return f"<code>{escape(codec.encode(schema).decode())}</code>"


def _schema(name: str, schema: Schema) -> str:
    text = escape(codec.pretty(schema))
    return f'<h3 id="schema-{escape(name)}">{escape(name)}</h3><pre>{text}</pre>'


def _table(titles: tuple[str, ...], rows: Iterable[list[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
