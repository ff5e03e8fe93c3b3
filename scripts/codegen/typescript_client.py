"""Emits the TypeScript client: the values of the wire, guards for failures, and the groups.

The code that sends a call and reads its answer is hand-written in `clients/typescript/src`.
Parameters have the names of the wire; callers do not see whether one is part of the path, the query
or the body.
"""

from collections.abc import Iterator
from textwrap import wrap

from perdure.openapi.contract import Contract, Operation, Parameter, Place
from perdure.openapi.shapes import ListOf, OneOf, Record
from scripts.codegen import typescript_source as source
from scripts.codegen.typescript_source import camel, member, pascal, spelled

Group = tuple[str, ...]

_STREAMS = frozenset({"durable_stream", "live_stream"})
_JSON = (
    "export type JsonValue =\n"
    "  | null\n  | boolean\n  | number\n  | string\n"
    "  | readonly JsonValue[]\n  | { readonly [key: string]: JsonValue }\n"
)


def types_module(contract: Contract) -> str:
    parts = [_JSON, *(_interface(record) for record in contract.records.values())]
    for name, shape in contract.unions.items():
        options = shape.options if isinstance(shape, OneOf) else (shape,)
        parts.append(source.union(name, [spelled(option) for option in options]))
    return source.module("Every value of the wire, as plain JSON.", (), "\n".join(parts))


def failures_module(contract: Contract) -> str:
    parts: list[str] = []
    for tag, record in contract.failures.items():
        stem = tag.removesuffix("Error")
        parts.append(_interface(record))
        parts.append(
            f"export function is{stem}(value: unknown): value is {tag} {{\n"
            f'  return hasTag(value, "{tag}")\n}}\n'
        )
    parts.append(source.union("DeclaredFailure", list(contract.failures)))
    return source.module(
        "Declared failures as wire values, and a guard for each.",
        ['import { hasTag } from "../errors.js"'],
        "\n".join(parts),
    )


def groups_module(contract: Contract) -> str:
    groups = _by_group(contract)
    parts = [
        _input(operation)
        for operations in groups.values()
        for operation in operations
        if operation.parameters
    ]
    parts += [_class(group, operations, list(groups)) for group, operations in groups.items()]
    parts.append(_root(list(groups)))
    body = "\n".join(parts)
    imports = [
        'import type { History, Page } from "../answers.js"',
        'import { type CallOptions, either, segment, type Wire } from "../wire.js"',
        'import type * as types from "./types.js"',
    ]
    return source.module("The groups of the client.", imports, body)


def _interface(record: Record) -> str:
    lines = [
        member(field.wire, spelled(field.shape), required=field.required) for field in record.fields
    ]
    head = source.comment(record.summary) if record.summary else ""
    if not lines:
        return f"{head}export type {record.name} = Record<string, never>\n"
    return f"{head}export interface {record.name} {{\n" + "\n".join(lines) + "\n}\n"


def _input(operation: Operation) -> str:
    """Return the input type of a call."""
    short = operation.public.shorthand
    lines = [
        member(_name(one), spelled(one.encoded, prefix="types."), required=one.required)
        for one in operation.parameters
        if short is None or one.name != short[0]
    ]
    body = "{\n" + "\n".join(lines) + "\n}"
    name = _input_name(operation)
    if short is None:
        return f"export interface {name} {body}\n"
    whole = next(one for one in operation.parameters if one.name == short[0])
    kind = spelled(whole.encoded, prefix="types.")
    return (
        f"export type {name} = {body} & (\n"
        f"  | {{ readonly {short[1]}: string; readonly {whole.wire}?: undefined }}\n"
        f"  | {{ readonly {whole.wire}: {kind}; readonly {short[1]}?: undefined }}\n"
        ")\n"
    )


def _root(groups: list[Group]) -> str:
    tops = [group for group in groups if len(group) == 1]
    members = [f"  readonly {group[0]}: {_class_name(group)}" for group in tops]
    made = [f"    this.{group[0]} = new {_class_name(group)}(wire)" for group in tops]
    return _class_source("Groups", members, made, [])


def _class(group: Group, operations: list[Operation], groups: list[Group]) -> str:
    inner = [one for one in groups if one[:-1] == group]
    members = ["  readonly #wire: Wire"]
    members += [f"  readonly {one[-1]}: {_class_name(one)}" for one in inner]
    made = ["    this.#wire = wire"]
    made += [f"    this.{one[-1]} = new {_class_name(one)}(wire)" for one in inner]
    return _class_source(_class_name(group), members, made, [_method(one) for one in operations])


def _class_source(name: str, members: list[str], made: list[str], methods: list[str]) -> str:
    constructor = "\n".join(["  constructor(wire: Wire) {", *made, "  }\n"])
    parts = ["\n".join(members) + "\n", constructor, *methods]
    return f"export class {name} {{\n" + "\n".join(parts) + "}\n"


def _method(operation: Operation) -> str:
    kind = operation.success.kind
    accepted = _accepted(operation)
    if kind != "websocket":
        accepted.append("options: CallOptions = {}")
    head = source.bracketed(
        f"{camel(operation.public.method)}(", accepted, f"): {_returned(operation)} {{", indent=2
    )
    method = [] if kind in {*_STREAMS, "content", "websocket"} else [f'"{operation.method}"']
    passed = [*method, _path(operation), _call(operation)]
    if kind != "websocket":
        passed.append("options")
    call = source.bracketed(f"return this.#wire.{_verb(operation)}(", passed, ")", indent=4)
    return f"{_comment(operation)}{head}\n{call}\n  }}\n"


def _accepted(operation: Operation) -> list[str]:
    if not operation.parameters:
        return ["_input: Record<string, never> = {}"]
    required = any(one.required for one in operation.parameters)
    return [f"input: {_input_name(operation)}{'' if required else ' = {}'}"]


def _comment(operation: Operation) -> str:
    tags = ", ".join(f"`{tag}`" for tag in dict.fromkeys(one.tag for one in operation.failures))
    lines = wrap(f"Declares {tags}.", width=source.LINE_MAX - 5, break_long_words=False)
    return source.comment(operation.public.summary, "", *lines, indent=2)


def _path(operation: Operation) -> str:
    path = operation.path
    found = [one for one in operation.parameters if one.place == "path"]
    for one in found:
        path = path.replace(f"{{{one.wire}}}", f"${{segment(input.{_name(one)})}}")
    return f"`{path}`" if found else f'"{path}"'


def _call(operation: Operation) -> str:
    parts: list[str] = []
    query = _placed(operation, "query", "location")
    if query:
        parts.append(f"query: {{ {', '.join(query)} }}")
    if operation.body is not None:
        body = _placed(operation, "body")
        parts.append(f"body: {{ {', '.join(body)} }}")
    if operation.public.patient:
        parts.append("patient: true")
    one = f"{{ {', '.join(parts)} }}" if parts else "{}"
    if len(one) <= source.LINE_MAX - 20 or not parts:
        return one
    lines = "".join(f"        {part},\n" for part in _spread(operation, parts))
    return f"{{\n{lines}      }}"


def _spread(operation: Operation, parts: list[str]) -> Iterator[str]:
    """Put each part on a line, and split a part that is too long into its members."""
    for part in parts:
        if len(part) <= source.LINE_MAX - 10:
            yield part
            continue
        places: tuple[Place, ...] = ("body",) if part.startswith("body") else ("query", "location")
        members = "".join(f"          {one},\n" for one in _placed(operation, *places))
        yield f"{part.partition(':')[0]}: {{\n{members}        }}"


def _placed(operation: Operation, *places: Place) -> list[str]:
    return [
        f"{_key(one.wire)}: {_value(operation, one)}"
        for one in operation.parameters
        if one.place in places
    ]


def _key(wire: str) -> str:
    return wire if wire.isidentifier() else source.quoted(wire)


def _value(operation: Operation, parameter: Parameter) -> str:
    short = operation.public.shorthand
    given = f"input.{_name(parameter)}"
    if short is None or parameter.name != short[0]:
        return given
    return f'either({given}, "{short[1]}", input.{short[1]})'


def _verb(operation: Operation) -> str:
    success = operation.success
    inner = "" if success.encoded is None else spelled(success.encoded, prefix="types.")
    match success.kind:
        case "data" | "location_data" if isinstance(success.encoded, ListOf):
            return f"items<{spelled(success.encoded.item, prefix='types.')}>"
        case "data" | "location_data":
            return f"data<{inner}>"
        case "no_content":
            return "done"
        case "durable_stream" | "live_stream":
            return f"stream<{inner}>"
        case "content":
            return "content"
        case "websocket":
            return "socket"
        case kind:
            return f"{kind}<{inner}>"


def _returned(operation: Operation) -> str:
    success = operation.success
    inner = "void" if success.encoded is None else spelled(success.encoded, prefix="types.")
    match success.kind:
        case "content":
            return "Promise<Uint8Array>"
        case "websocket":
            return "WebSocket"
        case "page":
            return f"Promise<Page<{inner}>>"
        case "history":
            return f"Promise<History<{inner}>>"
        case "durable_stream" | "live_stream":
            return f"AsyncGenerator<{inner}, void, void>"
        case _:
            return f"Promise<{inner}>"


def _by_group(contract: Contract) -> dict[Group, list[Operation]]:
    """Return inner groups before the groups that contain them."""
    groups: dict[Group, list[Operation]] = {}
    for operation in contract.operations:
        groups.setdefault(operation.public.group, []).append(operation)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[0]), item[0])))


def _class_name(group: Group) -> str:
    return f"{pascal(group)}Group"


def _input_name(operation: Operation) -> str:
    return f"{pascal((*operation.public.group, operation.public.method))}Input"


def _name(parameter: Parameter) -> str:
    """Return the names of Location parameters without the brackets of the query."""
    return parameter.name if parameter.place == "location" else parameter.wire
