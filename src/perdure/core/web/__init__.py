"""Web addresses, and HTML as text or Markdown.

Fetching a page is `host.http`; the tools are `tools.builtin.webfetch` and `websearch`.
"""
