"""Emits the typed client: the same methods over decoded values and branded ids.

A second module wraps them for callers without an event loop.
"""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from perdure.openapi.contract import Contract, Operation, Parameter
from perdure.openapi.names import Alias
from perdure.schema.codec import JsonValue
from perdure.schema.models.model import ModelRef
from scripts.codegen.python_source import (
    LINE_MAX,
    bracketed,
    by_group,
    children,
    class_name,
    document,
    forwarded,
    module,
    path_of,
    signature,
)

_STREAMS = {"durable_stream": "DurableEvent", "live_stream": "LiveEvent"}
_FOR_TYPES = {
    "collections.abc": ["AsyncGenerator", "Generator"],
    "typing": ["Literal"],
    "perdure.client.blocking": ["Blocking"],
    "perdure.client.pages": ["History"],
    "perdure.client.typed_events": ["DurableEvent", "LiveEvent"],
    "perdure.client.typed_wire": ["TypedWire"],
    "perdure.client.wire": ["CallOptions"],
    "perdure.schema.page": ["Page"],
}
_FOR_BLOCKING = {"perdure.client.generated": ["typed_groups", "typed_operations"]}

_OPERATIONS = "perdure.client.generated.typed_operations"

Group = tuple[str, ...]


def groups_module(contract: Contract) -> str:
    """The root of the client: each group is loaded when it is first used."""
    roots = children((), by_group(contract))
    names = [class_name(one) for one in roots]
    body = (
        "\n\nclass TypedGroups:\n"
        "    def __init__(self, wire: TypedWire) -> None:\n"
        "        self._typed_wire = wire\n"
    ) + "".join(
        f"\n    @cached_property\n    def {one[0]}(self) -> {class_name(one)}:\n"
        f"        from {_OPERATIONS} import {class_name(one)}\n\n"
        f"        return {class_name(one)}(self._typed_wire)\n"
        for one in roots
    )
    return module(
        "The groups of the typed client, each loaded when it is first used.",
        body,
        eager={"functools": ["cached_property"]},
        lazy={**_FOR_TYPES, _OPERATIONS: names},
    )


def operations_module(contract: Contract) -> str:
    spelling = _Spelling(contract.aliases)
    groups = by_group(contract)
    classes = "".join(
        _class(group, operations, list(groups), spelling) for group, operations in groups.items()
    )
    return module(
        "The operations of the typed client, in groups.",
        classes,
        eager={"perdure.client.wire": ["as_model", "either", "segment"], **spelling.used},
        lazy=_FOR_TYPES,
    )


def blocking_module(contract: Contract) -> str:
    spelling = _Spelling(contract.aliases)
    groups = by_group(contract)
    classes = "".join(
        _blocking_class(group, groups[group], list(groups), spelling) for group in groups
    )
    root = ["\n\nclass BlockingGroups:"]
    root.append(
        "    def __init__(self, groups: typed_groups.TypedGroups, blocking: Blocking) -> None:"
    )
    root += [
        f"        self.{group[0]} = {class_name(group)}(groups.{group[0]}, blocking)"
        for group in children((), groups)
    ]
    return module(
        "The groups of the typed client, for callers without an event loop.",
        classes + "\n".join(root) + "\n",
        eager={},
        lazy={**_FOR_TYPES, **_FOR_BLOCKING, **spelling.used},
    )


class _Spelling:
    """Spells types and collects the imports that they need."""

    def __init__(self, aliases: tuple[Alias, ...]) -> None:
        self._aliases = aliases
        self.used: dict[str, list[str]] = {}
        """Module -> names that generated code imports from it."""

    def of(self, kind: JsonValue) -> str:
        for alias in self._aliases:
            if alias.type == kind:
                return self.named(alias.module, alias.name)
        if get_origin(kind) is Annotated:
            return self.of(get_args(kind)[0])
        if get_origin(kind) in {UnionType, Union}:
            return " | ".join(self.of(one) for one in get_args(kind))
        if get_origin(kind) is Literal:
            return f"Literal[{', '.join(_quoted(value) for value in get_args(kind))}]"
        if get_origin(kind) is not None:
            inner = ", ".join("..." if one is ... else self.of(one) for one in get_args(kind))
            return f"{get_origin(kind).__name__}[{inner}]"
        return self._plain(kind)

    def _plain(self, kind: JsonValue) -> str:
        if kind is Any:
            return self.named("perdure.schema.codec", "JsonValue")
        if kind in {None, NoneType}:
            return "None"
        assert isinstance(kind, type | NewType), f"{kind!r} has no spelling"
        if kind.__module__ == "builtins":
            return kind.__name__
        return self.named(kind.__module__, kind.__name__)

    def named(self, module: str, name: str) -> str:
        names = self.used.setdefault(module, [])
        if name not in names:
            names.append(name)
        return name


def _class(
    group: Group, operations: list[Operation], groups: list[Group], spelling: _Spelling
) -> str:
    lines = [f"\n\nclass {class_name(group)}:", "    def __init__(self, wire: TypedWire) -> None:"]
    lines.append("        self._wire = wire")
    lines += [
        f"        self.{child[-1]} = {class_name(child)}(wire)" for child in children(group, groups)
    ]
    methods = "".join(f"\n{_method(one, spelling)}" for one in operations)
    return "\n".join(lines) + "\n" + methods


def _method(operation: Operation, spelling: _Spelling) -> str:
    socket = operation.success.kind == "websocket"
    at_once = socket or operation.success.kind in _STREAMS
    head = signature(
        operation,
        [(one, _accepted(one, spelling)) for one in operation.parameters],
        returns=_returned(operation, spelling),
        kind="def" if at_once else "async def",
    )
    call = bracketed(
        f"return {'' if at_once else 'await '}self._wire.{_verb(operation)}(",
        [
            *_leading(operation, spelling),
            path_of(operation),
            *_arguments(operation, spelling),
            *([] if socket else ["options=options"]),
        ],
        ")",
        indent=8,
    )
    return f"{head}\n{document(operation)}{call}\n"


def _blocking_class(
    group: Group, operations: list[Operation], groups: list[Group], spelling: _Spelling
) -> str:
    name = class_name(group)
    lines = [f"\n\nclass {name}:"]
    parameters = f"self, group: typed_operations.{name}, blocking: Blocking"
    head = f"    def __init__({parameters}) -> None:"
    if len(head) > LINE_MAX:
        head = f"    def __init__(\n        {parameters}\n    ) -> None:"
    lines.append(head)
    lines += ["        self._group = group", "        self._blocking = blocking"]
    lines += [
        f"        self.{child[-1]} = {class_name(child)}(group.{child[-1]}, blocking)"
        for child in children(group, groups)
    ]
    methods = "".join(f"\n{_blocking_method(one, spelling)}" for one in operations)
    return "\n".join(lines) + "\n" + methods


def _blocking_method(operation: Operation, spelling: _Spelling) -> str:
    returns = _returned(operation, spelling, stream="Generator")
    annotated = [(one, _accepted(one, spelling)) for one in operation.parameters]
    head = signature(operation, annotated, returns=returns, kind="def")
    call = forwarded(operation, iterates=operation.success.kind in _STREAMS)
    return f"{head}\n{document(operation)}{call}\n"


def _accepted(parameter: Parameter, spelling: _Spelling) -> str:
    accepted = _decoded(parameter, spelling)
    return f"{accepted} | str" if _is_model(parameter) else accepted


def _decoded(parameter: Parameter, spelling: _Spelling) -> str:
    return spelling.of(parameter.decoded).removesuffix(" | None")


def _is_model(parameter: Parameter) -> bool:
    """Whether a caller may give it as a string, such as "demo/demo"."""
    return ModelRef in {parameter.decoded, *get_args(parameter.decoded)}


def _leading(operation: Operation, spelling: _Spelling) -> list[str]:
    match operation.success.kind:
        case "durable_stream" | "live_stream" | "content" | "websocket":
            return []
        case "no_content" | "history":
            return [f'"{operation.method}"']
        case _:
            return [spelling.of(operation.success.decoded), f'"{operation.method}"']


def _arguments(operation: Operation, spelling: _Spelling) -> list[str]:
    found: list[str] = []
    for place, payload in (("query", operation.query), ("body", operation.body)):
        if payload is not None:
            name = spelling.named(payload.__module__, payload.__name__)
            members = [
                f"{one.name}={_value(operation, one, spelling)}"
                for one in operation.parameters
                if one.place == place
            ]
            found.append(bracketed(f"{place}={name}(", members, ")", indent=12).lstrip())
    if any(one.place == "location" for one in operation.parameters):
        found.append("location=(directory, workspace)")
    if operation.public.patient:
        found.append("patient=True")
    return found


def _value(operation: Operation, parameter: Parameter, spelling: _Spelling) -> str:
    short = operation.public.shorthand
    if short is None or parameter.name != short[0]:
        return f"as_model({parameter.name})" if _is_model(parameter) else parameter.name
    field, made = short[1], _decoded(parameter, spelling)
    return f"either({parameter.name}, {made}, {field}={field})"


def _verb(operation: Operation) -> str:
    match operation.success.kind:
        case "data" | "location_data":
            return "data"
        case "no_content":
            return "done"
        case "durable_stream":
            return "durable_events"
        case "live_stream":
            return "live_events"
        case "websocket":
            return "socket_url"
        case kind:
            return kind


def _returned(operation: Operation, spelling: _Spelling, *, stream: str = "AsyncGenerator") -> str:
    success = operation.success
    match success.kind:
        case "no_content":
            return "None"
        case "content":
            return "bytes"
        case "websocket":
            return "str"
        case "page":
            return f"Page[{spelling.of(success.decoded)}]"
        case "history":
            return "History[DurableEvent]"
        case "durable_stream" | "live_stream":
            return f"{stream}[{_STREAMS[success.kind]}]"
        case _:
            return spelling.of(success.decoded)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
