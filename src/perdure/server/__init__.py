"""The HTTP server: guard, dispatch, handlers, streams.

`app` is the ASGI application; `dispatch` decodes a request, calls its handler and turns errors into
answers; `http` is the server below it. Handlers call the runtime and hold no rules of their own.
"""
