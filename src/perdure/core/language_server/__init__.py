"""Messages and diagnostics of the Language Server Protocol, as bytes and values.

Starting and talking to a server is `location.workspace.language_server`.
"""
