"""Pure, synchronous decisions: functions from values to values.

Nothing here waits, reads a clock, opens a file or starts a process; import-linter and the tidy
tests check that. One sub-package for each concept. The same word names the service in `runtime`,
the table in `store` and the files in `location` that carry a decision out.

What needs a transaction goes to `store`, what needs the operating system to `host`.
"""
