"""Installed plugins: what the packages of this Python offer as entry points `perdure.plugins`.

An entry point of that group leads to a Plugin, or to a class that makes one without arguments. The
user who installed the package chose it, so it is trusted as the program itself is. A project cannot
name a plugin, because its author is not the user.

Invariant: a plugin that cannot be loaded or added is logged and left out as a whole; the others are
added.
"""

import logging
import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Final, cast

from perdure.runtime.plugins.plugins import Plugin, PluginError, Plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "perdure.plugins"
_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")

logger = logging.getLogger(__name__)


def find_installed() -> "tuple[EntryPoint, ...]":
    """Return the installed plugins, sorted by name; of two with one name, the first on the path."""
    if not (_has_other_finders() or any(map(_may_offer_plugins, sys.path))):
        return ()
    # Takes longer to load than a short command may take in all.
    from importlib.metadata import entry_points

    by_name = {point.name: point for point in reversed(tuple(entry_points(group=GROUP)))}
    return tuple(by_name[name] for name in sorted(by_name))


def add_installed(plugins: Plugins, points: "Sequence[EntryPoint]") -> None:
    for point in points:
        try:
            plugins.add(_load(point))
        # Boundary: a plugin is foreign code and may raise anything.
        except Exception as error:
            reason = str(error) or repr(error)
            logger.warning("plugin %s was left out: %s", point.name, reason, exc_info=True)


def _load(point: "EntryPoint") -> Plugin:
    offered: object = point.load()
    plugin = offered() if isinstance(offered, type) else offered
    if not (isinstance(getattr(plugin, "name", None), str) and hasattr(plugin, "setup")):
        raise PluginError(f"{point.value} is no plugin: it has no `name` and `setup`")
    return cast("Plugin", plugin)


def _has_other_finders() -> bool:
    """Whether packages may be found other than by the directories of sys.path."""
    return any(
        finder is not PathFinder and hasattr(finder, "find_distributions")
        for finder in sys.meta_path
    )


def _may_offer_plugins(entry: str) -> bool:
    """Whether a package in this entry of sys.path may offer plugins; False is certain."""
    if os.path.isfile(entry) or entry.lower().endswith(".egg"):
        # An archive, or a package whose metadata lies elsewhere.
        return True
    try:
        names = os.listdir(entry or ".")
    except OSError:
        return False
    metadata = (name for name in names if name.lower().endswith(_METADATA_SUFFIXES))
    return any(_names_group(os.path.join(entry, name, "entry_points.txt")) for name in metadata)


def _names_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False
