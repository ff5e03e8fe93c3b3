"""The subcommands of `perdure`, one module each, named like the subcommand.

A module offers `main(argv) -> int`. It parses its options, calls the client and prints the result.
A new command also needs a line in `cli.command_table`. Those about one Session are in `session`.
Code that two commands need goes to `cli`.
"""
