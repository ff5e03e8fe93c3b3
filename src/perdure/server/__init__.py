"""The HTTP server: guard, dispatch, handlers, streams.

`app` is the ASGI application and turns errors into answers; `guard` checks who calls; `binding`
joins Endpoints to handlers and compares their types; `dispatch` decodes a request, calls its
handler and encodes the result; `http` is the server below. Handlers call the runtime and decide
nothing themselves.
"""
