"""The runtime that the tests of the V1 routes are made of."""

from tests.contract.server.conftest import backend, port

__all__ = ["backend", "port"]
