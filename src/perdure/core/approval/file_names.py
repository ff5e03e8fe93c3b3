"""The names by which a permission rule can mean a file.

A tool asks for a file by its canonical path: relative to the Location inside it, absolute outside.
A rule may name the same file absolutely, below the Location as it was given or as it really is, and
in another case where the file system ignores case. `restrict_real_paths` adds where the links in a
rule lead.

Invariant: which rules match depends on the file alone, and not on how a caller spelled its path.
"""

import posixpath
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from perdure.core.text import wildcard
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.value import Value

FILE_ACTIONS: Final = frozenset({"read", "edit"})
"""Actions whose resources are files."""
_PATH_ACTIONS: Final = FILE_ACTIONS | {"external_directory"}
_WILD: Final = lazy_pattern(r"[*?]")


class FileNames(Value, kw_only=True):
    """The names of the files of one Location, as permission rules write them."""

    roots: tuple[str, ...] = ()
    """The Location's directory: canonical first, then as it was given."""
    ignores_case: bool = False

    def resource(self, real_path: str) -> str:
        """The resource of a canonical path: relative to the Location, or absolute outside."""
        return _relative(real_path, self.roots[0])

    def is_named(self, rule: Rule, action: str, resource: str) -> bool:
        """Whether the pattern of `rule` matches a name of this resource."""
        if action not in FILE_ACTIONS:
            return wildcard.matches(rule.resource, resource)
        pattern = rule.resource
        names = (resource,)
        if pattern.startswith("/") and not resource.startswith("/"):
            names = tuple(posixpath.normpath(f"{root}/{resource}") for root in self.roots)
        if self.ignores_case:
            pattern, names = _fold(pattern), tuple(map(_fold, names))
        return any(wildcard.matches(pattern, name) for name in names)


ANY_PLACE: Final = FileNames()
"""Without a Location: resources are compared as they are written."""


def restrict_real_paths(rules: Ruleset, root: str, real_path: Callable[[str], str]) -> Ruleset:
    """Rules that also deny or ask where the links that they name lead, and in folders they name.

    A rule that allows is not widened: the model could have made the link.
    """
    return tuple(each for rule in rules for each in (rule, *_wider(rule, root, real_path)))


def names_path(rules: Ruleset) -> bool:
    """Whether `restrict_real_paths` depends on what is on the disk."""
    return any(_literal(rule) for rule in rules)


def _wider(rule: Rule, root: str, real_path: Callable[[str], str]) -> Iterator[Rule]:
    if literal := _literal(rule):
        pattern = rule.resource.replace("\\", "/")
        real = real_path(posixpath.normpath(posixpath.join(root, literal)))
        named = _relative(real, real_path(root))
        ending = pattern[len(literal) :]
        found = (f"{named}/{ending}",) if ending else (named, f"{named}/*")
        yield from (Rule(rule.action, each, rule.effect) for each in found if each != pattern)


def _literal(rule: Rule) -> str:
    """The path or folder that a restricting rule names without wildcards; empty if it is none."""
    if rule.effect == "allow" or not any(wildcard.matches(rule.action, a) for a in _PATH_ACTIONS):
        return ""
    pattern = rule.resource.replace("\\", "/")
    wild = _WILD.search(pattern)
    literal = pattern if wild is None else pattern[: pattern.rfind("/", 0, wild.start()) + 1]
    return literal if literal.strip("./") else ""


def _relative(path: str, root: str) -> str:
    """The path relative to `root` if it is inside, else as it is."""
    inside = path.removeprefix(f"{root}/")
    if len(inside) < len(path) and posixpath.normpath(inside) == inside:
        # The usual case, which `relpath` takes six times as long for.
        return inside
    relative = posixpath.relpath(path, root)
    return path if relative == ".." or relative.startswith("../") else relative


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
