"""The page at `/` of a server whose web page was not built: what this is, and no data."""

from typing import Final

from perdure.server.pages.reference_page import STYLE_ELEMENT

PAGE: Final = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Perdure</title>{STYLE_ELEMENT}</head>
<body><main><h1>Perdure</h1>
<p>This is the HTTP server of Perdure, a durable runtime for sessions of coding agents.
Its web page is not built: run <code>make web</code> in the repository and load this page again.</p>
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
