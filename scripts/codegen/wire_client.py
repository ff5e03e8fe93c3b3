"""Emits the wire client: async methods over plain values, one class for each group.

The same module is written a second time for callers without an event loop.
"""

from perdure.openapi.contract import Contract, Operation, Parameter, Place
from perdure.openapi.shapes import ListOf
from scripts.codegen.python_source import (
    bracketed,
    by_group,
    children,
    class_name,
    document,
    forwarded,
    module,
    path_of,
    signature,
    spelled,
)

_STREAMS = frozenset({"durable_stream", "live_stream"})
_AT_ONCE = _STREAMS | {"websocket"}
_FOR_TYPES = {
    "collections.abc": ["AsyncGenerator", "Generator", "Mapping", "Sequence"],
    "typing": ["Literal"],
    "perdure.client.blocking": ["Blocking"],
    "perdure.client.generated": ["types", "wire_groups"],
    "perdure.client.pages": ["History"],
    "perdure.client.wire": ["CallOptions", "Wire"],
    "perdure.schema.codec": ["JsonValue"],
    "perdure.schema.page": ["Page"],
}

Group = tuple[str, ...]


def wire_module(contract: Contract) -> str:
    groups = by_group(contract)
    classes = "".join(_wire_class(group, groups[group], list(groups)) for group in groups)
    root = ["\n\nclass WireGroups:", "    def __init__(self, wire: Wire) -> None:"]
    root += [f"        self.{one[0]} = {class_name(one)}(wire)" for one in children((), groups)]
    return module(
        "The groups of the wire client.",
        classes + "\n".join(root) + "\n",
        eager={"perdure.client.wire": ["either", "segment"]},
        lazy=_FOR_TYPES,
    )


def sync_module(contract: Contract) -> str:
    groups = by_group(contract)
    classes = "".join(_sync_class(group, groups[group], list(groups)) for group in groups)
    root = ["\n\nclass SyncGroups:"]
    root.append(
        "    def __init__(self, groups: wire_groups.WireGroups, blocking: Blocking) -> None:"
    )
    root += [
        f"        self.{group[0]} = {class_name(group)}(groups.{group[0]}, blocking)"
        for group in children((), groups)
    ]
    return module(
        "The groups of the wire client, for callers without an event loop.",
        classes + "\n".join(root) + "\n",
        eager={},
        lazy=_FOR_TYPES,
    )


def _wire_class(group: Group, operations: list[Operation], groups: list[Group]) -> str:
    lines = [f"\n\nclass {class_name(group)}:", "    def __init__(self, wire: Wire) -> None:"]
    lines.append("        self._wire = wire")
    lines += [
        f"        self.{child[-1]} = {class_name(child)}(wire)" for child in children(group, groups)
    ]
    return "\n".join(lines) + "\n" + "".join(f"\n{_wire_method(one)}" for one in operations)


def _wire_method(operation: Operation) -> str:
    at_once = operation.success.kind in _AT_ONCE
    head = signature(
        operation,
        _annotated(operation),
        returns=_returned(operation, stream="AsyncGenerator"),
        kind="def" if at_once else "async def",
    )
    call = bracketed(
        f"return {'' if at_once else 'await '}self._wire.{_verb(operation)}(",
        [*_method(operation), path_of(operation), *_arguments(operation), *_options(operation)],
        ")",
        indent=8,
    )
    return f"{head}\n{document(operation)}{call}\n"


def _method(operation: Operation) -> list[str]:
    return [] if operation.success.kind in {*_AT_ONCE, "content"} else [f'"{operation.method}"']


def _options(operation: Operation) -> list[str]:
    return [] if operation.success.kind == "websocket" else ["options=options"]


def _arguments(operation: Operation) -> list[str]:
    query = _placed(operation, "query", "location")
    found = [_object("query", query)] if query else []
    if operation.body is not None:
        found.append(_object("body", _placed(operation, "body")))
    if operation.public.patient:
        found.append("patient=True")
    return found


def _placed(operation: Operation, *places: Place) -> list[str]:
    return [
        f'"{one.wire}": {_value(operation, one)}'
        for one in operation.parameters
        if one.place in places
    ]


def _value(operation: Operation, parameter: Parameter) -> str:
    short = operation.public.shorthand
    if short is None or parameter.name != short[0]:
        return parameter.name
    return f"either({parameter.name}, dict, {short[1]}={short[1]})"


def _object(name: str, members: list[str]) -> str:
    return bracketed(f"{name}={{", members, "}", indent=12).lstrip()


def _verb(operation: Operation) -> str:
    match operation.success.kind:
        case "data" | "location_data":
            return "items" if isinstance(operation.success.encoded, ListOf) else "data"
        case "no_content":
            return "done"
        case "durable_stream" | "live_stream":
            return "stream"
        case "websocket":
            return "socket_url"
        case kind:
            return kind


def _annotated(operation: Operation) -> list[tuple[Parameter, str]]:
    return [
        (one, spelled(one.encoded, prefix="types.", accepts=True)) for one in operation.parameters
    ]


def _returned(operation: Operation, *, stream: str) -> str:
    success = operation.success
    if success.encoded is None:
        return {"content": "bytes", "websocket": "str"}.get(success.kind, "None")
    if isinstance(success.encoded, ListOf):
        return f"tuple[{spelled(success.encoded.item, prefix='types.')}, ...]"
    inner = spelled(success.encoded, prefix="types.")
    match success.kind:
        case "page":
            return f"Page[{inner}]"
        case "history":
            return f"History[{inner}]"
        case "durable_stream" | "live_stream":
            return f"{stream}[{inner}]"
        case _:
            return inner


def _sync_class(group: Group, operations: list[Operation], groups: list[Group]) -> str:
    name = class_name(group)
    lines = [f"\n\nclass {name}:"]
    lines.append(f"    def __init__(self, group: wire_groups.{name}, blocking: Blocking) -> None:")
    lines += ["        self._group = group", "        self._blocking = blocking"]
    lines += [
        f"        self.{child[-1]} = {class_name(child)}(group.{child[-1]}, blocking)"
        for child in children(group, groups)
    ]
    return "\n".join(lines) + "\n" + "".join(f"\n{_sync_method(one)}" for one in operations)


def _sync_method(operation: Operation) -> str:
    returns = _returned(operation, stream="Generator")
    head = signature(operation, _annotated(operation), returns=returns, kind="def")
    call = forwarded(operation, iterates=operation.success.kind in _STREAMS)
    return f"{head}\n{document(operation)}{call}\n"
