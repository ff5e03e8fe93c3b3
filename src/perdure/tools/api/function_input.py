"""The input of a tool that is a plain function: one record that describes and checks it.

msgspec handles scalars, containers, Literal, enums, dataclasses, structs, TypedDict and unions. A
text in Annotated describes its parameter. A parameter whose type holds a pydantic model, or whose
Annotated holds pydantic's Field, is described and checked by pydantic (schema.type_schema).

Invariant: a parameter that cannot be described is refused when the tool is made, with its name.
"""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta

from perdure.schema import type_schema
from perdure.schema.codec import JsonValue, Record
from perdure.schema.type_schema import TypeForm, TypeSchemaError
from perdure.schema.value import Value
from perdure.tools.api import input_schema
from perdure.tools.api.registry import ToolRegistrationError
from perdure.tools.api.tool import ToolCallContext, ToolFailure

Check = Callable[[object], object]
Field = tuple[str, TypeForm] | tuple[str, TypeForm, JsonValue]

_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionInput(Value):
    record: type[Record]
    context: tuple[str, ...]
    """The parameters that are given the context of the call."""
    checks: Mapping[str, Check]
    """What checks and converts a parameter's value before the function gets it."""

    def arguments(self, given: Record, context: ToolCallContext) -> dict[str, JsonValue]:
        """The arguments of the function; raises ToolFailure for a value that a check refuses."""
        arguments: dict[str, JsonValue] = dict.fromkeys(self.context, context)
        for name in self.record.__struct_fields__:
            value = getattr(given, name)
            check = self.checks.get(name)
            arguments[name] = value if check is None else _checked(check, name, value)
        return arguments


def describe_input(function: Callable[..., JsonValue], name: str) -> FunctionInput:
    """The input of `function`; raises ToolRegistrationError with the tool and the parameter."""
    context: list[str] = []
    checks: dict[str, Check] = {}
    fields: list[Field] = []
    for parameter, annotation in _parameters(function, name):
        if _plain(annotation) is ToolCallContext:
            context.append(parameter.name)
            continue
        kind, check = _kind(annotation, name, parameter.name)
        if check is not None:
            checks[parameter.name] = check
        fields.append(_field(parameter, kind))
    return FunctionInput(_record(fields, name), tuple(context), checks)


def _parameters(
    function: Callable[..., JsonValue], name: str
) -> Iterator[tuple[inspect.Parameter, TypeForm]]:
    try:
        signature = inspect.signature(function)
        annotations = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        reason = f"its signature cannot be read: {error}"
        raise ToolRegistrationError(f"tool {name!r}: {reason}") from error
    for parameter in signature.parameters.values():
        if parameter.kind in _VARIABLE:
            raise _refused(name, parameter.name, "must have a name of its own, not stand for many")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise _refused(name, parameter.name, "must be callable by its name")
        if parameter.name not in annotations:
            raise _refused(name, parameter.name, "needs a type")
        yield parameter, annotations[parameter.name]


def _kind(annotation: TypeForm, name: str, parameter: str) -> tuple[TypeForm, Check | None]:
    """The type that msgspec describes and checks, and what remains to be checked afterwards."""
    plain, notes = _plain(annotation), _notes(annotation)
    about = tuple(Meta(description=note) if isinstance(note, str) else note for note in notes)
    try:
        described = type_schema.describe_with_pydantic(annotation)
    except TypeSchemaError as error:
        raise _refused(name, parameter, str(error)) from error
    if described is not None:
        checked = Annotated[JsonValue, Meta(extra_json_schema=described.schema), *about]
        return checked, described.convert
    if not about:
        return plain, None
    return Annotated[plain, *about], None


def _field(parameter: inspect.Parameter, kind: TypeForm) -> Field:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return parameter.name, kind
    if isinstance(default, (list, dict, set)):
        # A new copy for each call, and not the function's own default.
        kept = cast("list[JsonValue]", default).copy()
        return parameter.name, kind, msgspec.field(default_factory=kept.copy)
    return parameter.name, kind, default


def _record(fields: list[Field], name: str) -> type[Record]:
    try:
        made = msgspec.defstruct(
            f"{name}_input",
            fields,
            bases=(Record,),
            kw_only=True,
            forbid_unknown_fields=False,
            rename=None,
        )
        input_schema.input_schema(cast("type[Record]", made))
    except TypeSchemaError as error:
        raise ToolRegistrationError(f"tool {name!r}: {error}") from error
    except (TypeError, ValueError) as error:
        raise ToolRegistrationError(f"tool {name!r} cannot be described: {error}") from error
    return cast("type[Record]", made)


def _plain(annotation: TypeForm) -> TypeForm:
    """The type without its Annotated."""
    if typing.get_origin(annotation) is Annotated:
        return typing.get_args(annotation)[0]
    return annotation


def _notes(annotation: TypeForm) -> tuple[str | Meta, ...]:
    if typing.get_origin(annotation) is not Annotated:
        return ()
    return tuple(note for note in typing.get_args(annotation)[1:] if isinstance(note, str | Meta))


def _checked(check: Check, name: str, value: object) -> object:
    try:
        return check(value)
    except ValueError as error:
        # pydantic's own error is one.
        raise ToolFailure(f"Invalid tool input: {name}: {error}") from error


def _refused(name: str, parameter: str, reason: str) -> ToolRegistrationError:
    return ToolRegistrationError(f"tool {name!r}: parameter {parameter!r} {reason}")
