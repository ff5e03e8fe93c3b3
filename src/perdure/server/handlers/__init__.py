"""One module for each group of endpoints; a handler calls the runtime and returns its result.

The table in `server.app` must name a handler for every endpoint of `protocol.api`.
"""
