"""Deprecated: moved to `perdure.schema.models.model`."""

from perdure.deprecation import moved_module

__getattr__ = moved_module(__name__, "perdure.schema.models.model")
