"""A store on a real file, with one Session in it."""

from tests.support.stored_session import facts, store

__all__ = ["facts", "store"]
