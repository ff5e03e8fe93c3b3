"""Old names that still work for one release and name their replacement in a DeprecationWarning.

A module with old names sets `__getattr__ = moved_names(__name__, {...})`, one that was moved as a
whole `__getattr__ = moved_module(__name__, "perdure.new.module")`. The new home is imported when an
old name is used, so that a stub module costs nothing and adds no import between layers.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def moved_names(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module `__getattr__` for `new_names`: old name -> full new name, such as "perdure.open"."""

    def __getattr__(name: str) -> Any:
        new_name = new_names.get(name)
        if new_name is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", new_name)
        home, _, attribute = new_name.rpartition(".")
        return getattr(import_module(home), attribute)

    return __getattr__


def moved_module(old_module: str, new_module: str) -> Callable[[str], Any]:
    """A module `__getattr__` for a module whose names are all in `new_module`."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            # The import system asks for these; they are no names of the old module.
            raise AttributeError(f"module {old_module!r} has no attribute {name!r}")
        found = getattr(import_module(new_module), name)
        _warn(f"{old_module}.{name}", f"{new_module}.{name}")
        return found

    return __getattr__


def _warn(old_name: str, new_name: str) -> None:
    # 3: this function, `__getattr__`, and the line that used the old name.
    warnings.warn(
        f"{old_name} is deprecated and will be removed in the next release; use {new_name}",
        DeprecationWarning,
        stacklevel=3,
    )
