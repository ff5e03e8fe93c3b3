"""The HTTP contract compiled to an OpenAPI document.

`contract` is the compiled endpoint table that the server's `/doc` and `make generate` read. The
generators of the clients are `scripts/codegen`; the endpoints themselves are `protocol`.
"""
