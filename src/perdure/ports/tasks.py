"""Port for starting a background task, which its owner ends. Implemented by runtime.tasks."""

from collections.abc import Callable, Coroutine

StartTask = Callable[[Coroutine[None, None, None]], None]
"""Starts the work and returns at once. The work handles its own failures."""
