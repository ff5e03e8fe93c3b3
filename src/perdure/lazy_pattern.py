"""Regular expressions that are compiled when they are first used.

A command loads hundreds of them and uses a few; compiling all of them took a twelfth of its time.
"""

import re
from typing import Any, AnyStr, cast


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what behaves as `re.compile(source, flags)`, and compiles with its first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(source, flags))


class LazyPattern:
    """Compiles at the first access of a method, and keeps the methods that were accessed."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # copy and pickle ask for these before there is a pattern.
            raise AttributeError(name)
        value = getattr(re.compile(self.pattern, self.flags), name)
        # Found in the instance from now on, so that a later use costs nothing more.
        self.__dict__[name] = value
        return value
