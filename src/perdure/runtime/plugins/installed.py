"""Plugins that are installed: whatever the packages of this Python offer as `perdure.plugins`.

An entry point of that group leads to a Plugin, or to a class that makes one without arguments.
Whoever installed the package chose it, so that it is trusted as the program itself is; a project
cannot name a plugin, because a project is somebody else's.

Invariant: one that cannot be loaded or added is reported and left out. The others are there, and
nothing of it is.
"""

import logging
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from perdure.runtime.plugins.plugins import Plugin, PluginError, Plugins

GROUP: Final = "perdure.plugins"

logger = logging.getLogger(__name__)


def find_installed() -> tuple[EntryPoint, ...]:
    """What is installed, in the order of the names; of two with one name, the first."""
    by_name = {point.name: point for point in reversed(tuple(entry_points(group=GROUP)))}
    return tuple(by_name[name] for name in sorted(by_name))


def add_installed(plugins: Plugins, points: Sequence[EntryPoint]) -> None:
    for point in points:
        try:
            plugins.add(_loaded(point))
        # Boundary: it is somebody else's code, and may raise anything.
        except Exception as error:
            reason = str(error) or repr(error)
            logger.warning("plugin %s was left out: %s", point.name, reason, exc_info=True)


def _loaded(point: EntryPoint) -> Plugin:
    offered: object = point.load()
    plugin = offered() if isinstance(offered, type) else offered
    if not (isinstance(getattr(plugin, "name", None), str) and hasattr(plugin, "setup")):
        raise PluginError(f"{point.value} is no plugin: it has no `name` and `setup`")
    return cast("Plugin", plugin)
