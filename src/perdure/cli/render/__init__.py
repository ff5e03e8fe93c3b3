"""What commands print for people: styles, tables, Markdown, tool calls, and a Session's events.

Nothing here writes control characters. A text is a list of spans with styles, which `cli.terminal`
cleans and prints, with colours on a terminal and plain everywhere else.
"""
