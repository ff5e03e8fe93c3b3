"""The SDK Contract IR: complete, named on purpose, and enough for an emitter."""

from typing import get_type_hints

import pytest
from msgspec import defstruct

from perdure.openapi.contract import Contract, Operation, compile_contract
from perdure.openapi.names import PUBLIC, public_name
from perdure.openapi.shapes import Choice, ListOf, MapOf, OneOf, Ref, Scalar, Shape, walk
from perdure.protocol.api import API
from perdure.protocol.endpoint import Endpoint, Success
from perdure.protocol.session.session import PROMPT, CreateSession, PromptSession
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.errors import (
    DamagedRowError,
    InvalidRequestError,
    PromptSettledError,
    SessionNotFoundError,
)
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.receipt import AdmittedPrompt
from scripts.codegen import types_module
from tests.requirements import requirement
from tests.support.inputs.contract_description import contract


def operation(operation_id: str) -> Operation:
    return next(one for one in contract().operations if one.id == operation_id)


def shapes(contract: Contract) -> list[Shape]:
    found: list[Shape] = []
    for one in contract.operations:
        for parameter in one.parameters:
            walk(parameter.encoded, found.append)
        if one.success.encoded is not None:
            walk(one.success.encoded, found.append)
    for record in (*contract.records.values(), *contract.failures.values()):
        for field in record.fields:
            walk(field.shape, found.append)
    for union in contract.unions.values():
        walk(union, found.append)
    return found


@requirement("S21", "S113", "S116")
def test_every_endpoint_of_the_table_is_one_operation() -> None:
    assert [one.id for one in contract().operations] == [each.operation_id for each in API]
    for one, endpoint in zip(contract().operations, API, strict=True):
        assert (one.method, one.path) == (endpoint.method, endpoint.path)
        tags = {kind.tag for kind in endpoint.failures}
        assert {failure.tag for failure in one.failures} == tags <= contract().failures.keys()


@requirement("S112")
def test_every_operation_has_a_public_name_of_its_own() -> None:
    names = [(*one.public.group, one.public.method) for one in contract().operations]
    assert len(set(names)) == len(names)
    assert set(PUBLIC) == {each.operation_id for each in API}
    assert ("sessions", "prompt") in names


@requirement("S112")
def test_an_operation_without_a_chosen_name_is_refused() -> None:
    nameless = Endpoint(
        operation_id="v2.new.thing",
        method="GET",
        path="/api/new",
        group="new",
        success=Success("no_content"),
    )
    with pytest.raises(ValueError, match=r"v2\.new\.thing has no public name"):
        compile_contract([nameless])
    assert public_name("v2.session.get").group == ("sessions",)


@requirement("S21", "S114")
def test_parameters_keep_their_encoded_and_their_decoded_type() -> None:
    found = {one.name: one for one in operation(PROMPT.operation_id).parameters}
    assert (found["session_id"].place, found["session_id"].decoded) == ("path", SessionID)
    assert found["session_id"].encoded == Scalar("string")
    assert (found["prompt"].encoded, found["prompt"].required) == (Ref("PromptInput"), True)
    assert found["id"].encoded == Scalar("string")
    assert found["id"].decoded == get_type_hints(PromptSession, include_extras=True)["id"]
    assert found["delivery"].encoded == Ref("Delivery")
    success = operation(PROMPT.operation_id).success
    assert (success.kind, success.decoded) == ("data", AdmittedPrompt)
    assert success.encoded == Ref("AdmittedPrompt")


def test_a_location_is_spelled_as_the_server_reads_it() -> None:
    found = {one.name: one.wire for one in operation("v2.agent.list").parameters}
    assert found == {"directory": "location[directory]", "workspace": "location[workspace]"}


def test_two_parameters_of_one_name_are_refused() -> None:
    twice = Endpoint(
        operation_id="v2.session.create",
        method="POST",
        path="/api/session/{id}",
        group="sessions",
        body=CreateSession,
        success=Success("no_content"),
    )
    with pytest.raises(ValueError, match="two parameters of one name"):
        compile_contract([twice])


def test_every_reference_leads_to_a_record_or_a_named_union() -> None:
    named = {shape.name for shape in shapes(contract()) if isinstance(shape, Ref)}
    assert {"SessionMessage", "DurableEvent", "PromptAdmittedEvent"} <= named
    assert named <= {*contract().records, *contract().unions}


@pytest.mark.parametrize(
    "failure",
    [
        SessionNotFoundError(SessionID("ses_1")),
        PromptSettledError(MessageID("msg_1"), "promoted"),
        DamagedRowError(SessionID("ses_1"), table="event", seq=3, reason="r"),
        DamagedRowError(SessionID("ses_1"), table="event", seq=None, reason="r"),
        InvalidRequestError("bad", kind="Body", field="x"),
        InvalidRequestError("bad"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_failure_carries_what_its_record_says(failure: SessionNotFoundError) -> None:
    fields = contract().failures[failure.tag].fields
    given = set(failure.wire())
    assert {field.wire for field in fields if field.required} <= given
    assert given <= {field.wire for field in fields}


def emitted(contract: Contract) -> str:
    """A small emitter for another language: it reads the IR and nothing else."""
    lines = [
        f"type {name} = {{ {'; '.join(f'{f.wire}: {notation(f.shape)}' for f in record.fields)} }}"
        for name, record in contract.records.items()
    ]
    lines += [f"type {name} = {notation(shape)}" for name, shape in contract.unions.items()]
    for one in contract.operations:
        inputs = "; ".join(f"{p.name}: {notation(p.encoded)}" for p in one.parameters)
        shape = one.success.encoded
        answer = "void" if shape is None else notation(shape)
        name = ".".join((*one.public.group, one.public.method))
        lines.append(f"{name}({{ {inputs} }}): {one.success.kind}<{answer}>")
    return "\n".join(lines)


def notation(shape: Shape) -> str:
    match shape:
        case Scalar(name) | Ref(name):
            return name
        case Choice(values):
            return " | ".join(codec.encode(value).decode() for value in values)
        case ListOf(item):
            return f"({notation(item)})[]"
        case MapOf(value):
            return f"Record<string, {notation(value)}>"
        case OneOf(options):
            return " | ".join(notation(option) for option in options)


@requirement("S21", "S114")
def test_an_emitter_for_another_language_needs_the_ir_alone() -> None:
    text = emitted(contract())
    assert 'type Delivery = "queue" | "steer"' in text
    assert "sessions.get({ session_id: string }): data<SessionInfo>" in text
    assert "sessions.events({ session_id: string; after: integer; replayed: " in text
    assert "terminals.connect(" in text


class Tree(Record):
    name: str
    children: "tuple[Tree, ...]" = ()


def test_a_record_that_holds_its_own_kind_can_be_written_and_read() -> None:
    grown = Endpoint(
        operation_id="v2.health.get",
        method="GET",
        path="/api/health",
        group="health",
        success=Success("data", Tree),
    )
    source = types_module.types_module(compile_contract([grown]))
    written: dict[str, type] = {}
    exec(source, written)
    assert written["Tree"].__annotations__["name"] is str
    hints = get_type_hints(written["Tree"], globalns=written)
    assert hints["children"] == list[written["Tree"]]


def test_two_records_of_one_name_are_refused() -> None:
    namesake = defstruct("Tree", [("height", int)], bases=(Record,))
    endpoints = [
        Endpoint(
            operation_id=operation_id,
            method="GET",
            path="/api/health",
            group="health",
            success=Success("data", kind),
        )
        for operation_id, kind in (("v2.health.get", Tree), ("v2.location.get", namesake))
    ]
    with pytest.raises(ValueError, match="two different records are named Tree"):
        compile_contract(endpoints)
