"""The HTTP contract as data: every endpoint with its path, query, body, result and errors.

Server and client both read this table. A new endpoint is declared in the module of its concept and
listed in `api`; its handler is `server.handlers`.
"""
