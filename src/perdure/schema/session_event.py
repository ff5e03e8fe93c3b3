"""Deprecated: moved to `perdure.schema.session.event`; programs use `perdure.events`."""

from perdure.deprecation import moved_module

__getattr__ = moved_module(__name__, "perdure.schema.session.event")
