"""HTTP clients: the streaming client for models, the guarded client for web pages, OAuth callbacks.

The server side of HTTP is `server.http`.
"""
