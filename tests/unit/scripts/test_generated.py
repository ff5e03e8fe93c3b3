"""Generated files are committed; they must be what the table says today."""

import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path

from perdure.client import WireClient
from perdure.client.blocking_client import connect_blocking
from perdure.client.blocking_wire import BlockingWireClient
from perdure.client.client import Client
from perdure.client.generated import types
from perdure.protocol.api import API
from perdure.protocol.errors import STATUS_BY_ERROR
from perdure.schema import codec
from perdure.version import __version__
from scripts.codegen import python_source
from scripts.codegen.files import generated
from tests.requirements import requirement
from tests.support.inputs.contract_description import contract, document

ROOT = Path(__file__).parents[3]


def test_make_generate_would_change_nothing() -> None:
    for name, content in generated(__version__).items():
        assert (ROOT / name).read_text(encoding="utf-8") == content, f"run make generate: {name}"


def test_every_operation_is_documented_once() -> None:
    operations = [
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
    ]
    assert sorted(operations) == sorted(endpoint.operation_id for endpoint in API)


@requirement("S194")
def test_a_request_body_is_required_in_the_published_document() -> None:
    for endpoint in API:
        operation = document()["paths"][endpoint.path][endpoint.method.lower()]
        if endpoint.body is not None:
            assert operation["requestBody"]["required"] is True
        else:
            assert "requestBody" not in operation


def test_declared_failures_are_documented_with_their_status() -> None:
    for endpoint in API:
        responses = document()["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        for error in endpoint.failures:
            shown = responses[str(STATUS_BY_ERROR[error])]["content"]["application/json"]
            assert error.tag in shown["schema"]["properties"]["_tag"]["enum"]


def test_references_lead_somewhere() -> None:
    references = re.findall(r'"\$ref":"([^"]+)"', codec.encode(document()).decode())
    known = {f"#/components/schemas/{name}" for name in document()["components"]["schemas"]}
    assert references
    assert set(references) <= known


@requirement("S20", "S113")
def test_every_client_offers_every_operation() -> None:
    clients = [kind("http://nowhere.invalid") for kind in (WireClient, Client)]
    nowhere = "http://nowhere.invalid"
    with BlockingWireClient(nowhere) as sync, connect_blocking(nowhere) as blocking:
        for operation in contract().operations:
            name = ".".join((*operation.public.group, python_source.method_name(operation)))
            offered = [method_of(client, name) for client in (*clients, sync, blocking)]
            assert all(method is not None for method in offered), name
            named = {parameter.name for parameter in operation.parameters}
            for method in offered:
                assert method is not None
                assert named <= set(inspect.signature(method).parameters), name


def method_of(client: object, name: str) -> Callable[..., object] | None:
    for part in name.split("."):
        client = getattr(client, part, None)
    return client if callable(client) else None


def test_the_values_of_the_wire_can_be_inspected_at_run_time() -> None:
    hints = typing.get_type_hints(types.SessionInfo, include_extras=True)
    assert hints["id"] is str
    assert types.SessionInfo.__required_keys__ >= {"id", "location", "time"}
    assert "agent" in types.SessionInfo.__optional_keys__
