"""Our own contract and its description, made once for all the tests of a process that ask."""

from functools import cache

from perdure.openapi import document as openapi_emitter
from perdure.openapi.contract import Contract, compile_contract
from perdure.protocol.api import API
from perdure.schema.codec import JsonObject


@cache
def contract() -> Contract:
    return compile_contract(API)


@cache
def document() -> JsonObject:
    """To be read, not changed."""
    return openapi_emitter.document(contract(), title="Perdure", version="1")
