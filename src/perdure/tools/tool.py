"""Deprecated: moved to `perdure.tools.api.tool`; programs use `perdure.Tool`."""

from perdure.deprecation import moved_module

__getattr__ = moved_module(__name__, "perdure.tools.api.tool")
