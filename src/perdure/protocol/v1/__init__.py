"""The V1 contract as data: the routes and shapes that clients of OpenCode before V2 speak.

Each module is one concept with its shapes and its `ENDPOINTS`; `api` lists them all. Handlers are
in `server.v1`. Nothing of V1 is stored: every answer is computed from what V2 shows too.
"""
