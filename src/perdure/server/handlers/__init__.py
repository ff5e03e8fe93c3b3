"""Handlers, in modules by the thing that they are about; each calls the runtime.

The table in `server.app` must name one handler for every Endpoint of `protocol.api`.
"""
