"""Deprecated: moved to `perdure.schema.session.message`."""

from perdure.deprecation import moved_module

__getattr__ = moved_module(__name__, "perdure.schema.session.message")
