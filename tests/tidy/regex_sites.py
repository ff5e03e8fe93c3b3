"""Finds every regular expression of the package, and the methods that it is used with.

A compiled pattern is found as a value of its module, a pattern in the middle of a function by
its call of `re`. A pattern that a function puts together is no constant; the test has a table of
those.
"""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, cast, get_args, get_origin

import msgspec

from perdure.lazy_pattern import LazyPattern
from tests.tidy import source_tree
from tests.tidy.source_tree import Module

Pattern = re.Pattern[str] | re.Pattern[bytes]

_CALLS: Final = frozenset(
    {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
)


@dataclass(frozen=True)
class Site:
    """A pattern, and the methods of `re.Pattern` that it is used with."""

    where: str
    pattern: Pattern
    methods: frozenset[str]


def find_constant(layer: str) -> list[Site]:
    """Every pattern of a layer that is known without calling a function."""
    modules = [module for module in source_tree.modules() if module.name.startswith(f"{layer}/")]
    return [site for module in modules for site in _sites(module)]


def find_computed() -> dict[str, str]:
    """Every function that compiles a pattern which is not a constant, and where it does so."""
    return {
        f"{module.name}:{function.name}": module.at(call)
        for module in source_tree.modules()
        for function in source_tree.functions(module.nodes)
        for call in _calls(ast.walk(function))
        if not isinstance(call.args[0], ast.Constant)
    }


def _sites(module: Module) -> Iterator[Site]:
    if "import re\n" not in module.text and "lazy_pattern" not in module.text:
        return
    for name, value in vars(importlib.import_module(_dotted(module))).items():
        for pattern in _patterns(value):
            yield Site(f"{module.name}:{name}", pattern, _methods(module, name))
    for function in source_tree.functions(module.nodes):
        for call in _calls(ast.walk(function)):
            if isinstance(call.args[0], ast.Constant):
                yield Site(module.at(call), _compiled(call), frozenset({_called(call)}))


def _dotted(module: Module) -> str:
    path = module.name.removesuffix(".py").removesuffix("/__init__")
    return f"perdure.{path.replace('/', '.')}"


def _patterns(value: object) -> Iterator[Pattern]:
    """The patterns in a value of a module."""
    if isinstance(value, LazyPattern):
        # Compiled here, so that the first use is not slower than the others.
        yield re.compile(value.pattern, value.flags)
    elif isinstance(value, re.Pattern):
        yield cast("Pattern", value)
    elif get_origin(value) is Annotated:
        metas = [meta for meta in get_args(value) if isinstance(meta, msgspec.Meta)]
        yield from (re.compile(meta.pattern) for meta in metas if meta.pattern is not None)
    else:
        for inner in _parts(value):
            yield from _patterns(inner)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, tuple | list | frozenset):
        return cast("Iterable[object]", value)
    return msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else ()


def _methods(module: Module, name: str) -> frozenset[str]:
    """The methods that the package calls on the pattern `name`; a search if that is unclear.

    A pattern that only is an argument is used with the methods of such parameters.
    """
    others = (module,) if name.startswith("_") else source_tree.modules()
    used = [_used(other, name) for other in others]
    passed = [_used(module, parameter) for parameter in _pattern_parameters(module)]
    nothing = frozenset[str]()
    return nothing.union(*used) or nothing.union(*passed) or frozenset({"search"})


def _used(module: Module, name: str) -> frozenset[str]:
    return _CALLS & {
        node.attr
        for node in module.nodes
        if isinstance(node, ast.Attribute) and _names(node.value, name)
    }


def _pattern_parameters(module: Module) -> set[str]:
    return {
        node.arg
        for node in module.nodes
        if isinstance(node, ast.arg)
        and node.annotation is not None
        and ast.unparse(node.annotation).startswith("re.Pattern")
    }


def _names(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found == name
        case _:
            return False


def _calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for node in nodes:
        if isinstance(node, ast.Call) and _called(node) and node.args:
            yield node


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=method) if method in _CALLS:
            return method
        case ast.Name(id="lazy_pattern"):
            return "compile"
        case _:
            return ""


def _compiled(call: ast.Call) -> Pattern:
    first = call.args[0]
    assert isinstance(first, ast.Constant)
    assert isinstance(first.value, str | bytes)
    return re.compile(first.value)
