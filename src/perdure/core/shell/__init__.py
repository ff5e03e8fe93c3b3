"""Reading shell commands for approval: words, wrappers, parts, patterns, environment.

Parsing uses a grammar passed in by `tools.shell`. Whether a part is allowed is
`core.approval.rules`; running a command is `tools.builtin.bash`.
"""
