"""Restricts this process by Landlock: rules of the kernel about files, signals and sockets.

A rule gives rights to what is below a path, and no rule takes them back. So a hidden place is left
out by giving rights to everything around it, and a place inside a writable one stays writable.
"""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from perdure.host.sandbox import kernel, privileges
from perdure.host.sandbox.namespaces import DEVICES, PlaceWord

_READ_RIGHTS: Final = 0b1101
"""Execute, read a file, list a directory."""
_LIST_RIGHT: Final = 0b1000
_DEVICE_RIGHTS: Final = 0b0110
_FILE_RIGHTS: Final = 0b1_1100_0000_0000_0111
"""The rights that a rule about a file may name."""
_TRUNCATE: Final = 1 << 14
_DEVICE_CONTROL: Final = 1 << 15
_RIGHTS: Final = (13, 14, 15, 15, 16)
"""The number of rights that each version of Landlock knows."""


def restrict(places: Sequence[PlaceWord]) -> None:
    version = kernel.landlock_version()
    handled = (1 << _RIGHTS[min(version, len(_RIGHTS)) - 1]) - 1
    fields = (handled, 0, 0b11) if version >= 6 else (handled, 0) if version >= 4 else (handled,)
    rules = _Rules(
        kernel.landlock_rules(fields),
        handled,
        # A disk is a file there, which the administrator may read.
        {"/dev", *(path for kind, path in places if kind == "h")},
    )
    rules.allow_around("/", _READ_RIGHTS)
    for kind, path in places:
        if kind in "wk":
            rules.allow_around(path, handled)
        elif kind in "rd":
            rules.allow(path, _READ_RIGHTS)
    for name in DEVICES:
        rules.allow(f"/dev/{name}", _DEVICE_RIGHTS | _TRUNCATE | _DEVICE_CONTROL)
    privileges.gain_nothing()
    kernel.landlock_enforce(rules.descriptor)
    os.close(rules.descriptor)


class _Rules:
    def __init__(self, descriptor: int, handled: int, hidden: set[str]) -> None:
        self.descriptor = descriptor
        self._handled = handled
        self._hidden = hidden
        self._around_hidden = {outer for path in hidden for outer in _parents(path)}

    def allow_around(self, path: str, rights: int) -> None:
        """Allow what is below a path, except hidden places."""
        if path in self._hidden:
            return
        if path not in self._around_hidden:
            self.allow(path, rights)
            return
        self.allow(path, _LIST_RIGHT)
        for child in _children(path):
            self.allow_around(child, rights)

    def allow(self, path: str, rights: int) -> None:
        try:
            place = kernel.open_path(path)
        except OSError:
            # Without a rule there are fewer rights.
            return
        if place is None:
            return
        rights &= self._handled
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FILE_RIGHTS
        rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        kernel.landlock_allow(self.descriptor, rule, path)
        os.close(place)


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _children(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as found:
            # The target of a link is allowed or not by its own place.
            names = [entry.name for entry in found if not entry.is_symlink()]
    except OSError:
        return
    for name in names:
        yield os.path.join(path, name)
