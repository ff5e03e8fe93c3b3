"""Reading shell commands for approval: words, parts, what they may run, patterns, environment.

Text of literal words is read here; a grammar in `tools.shell` finds commands in other text.
Whether a part is allowed is `core.approval.rules`; running a command is `tools.builtin.bash`.
"""
