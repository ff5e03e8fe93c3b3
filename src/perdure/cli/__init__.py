"""The `perdure` command line.

`main` finds the subcommand and loads that one alone; each subcommand is a module in `commands`.
The modules here are what several commands share: options, output, prompts at the terminal, and the
two ways to reach Sessions (the local data directory, or a server).

Commands print through `terminal` only. Decisions about Sessions belong in `runtime`.
"""
