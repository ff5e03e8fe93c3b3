"""Everything that belongs to one directory: configuration, agents, models, tools, approvals.

A `Location` is opened once for each directory by `registry` and built by `factory`. One sub-package
for each concept. Sessions and their runs are `runtime`; pure rules are `core`.
"""
