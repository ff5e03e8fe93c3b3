"""Renders the page at `/`: what this server is, and where its description is. It shows no data."""

from html import escape
from typing import Final

from perdure.server.reference_page import STYLE_ELEMENT

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>{style}</head>
<body><main><h1>{title}</h1>
<p>This is the HTTP server of Perdure, a durable runtime for sessions of coding agents.
It has no web page of its own: programs talk to it.</p>
<ul>
<li><a href="/doc">Every operation and every shape</a>, also as
<a href="/openapi.json">an OpenAPI document</a></li>
<li>On the command line: <code>perdure --help</code>, and
<code>perdure run --attach URL "prompt"</code> for a prompt to this server</li>
<li>In a terminal: <code>opencode attach URL</code></li>
<li>In the documents of the project: <code>README.md</code>, <code>docs/operating.md</code> for
running a server, <code>docs/compatibility.md</code> for clients that work with it</li>
</ul></main></body></html>
"""


def render(version: str) -> str:
    return _PAGE.format(title=escape(f"Perdure {version}"), style=STYLE_ELEMENT)
