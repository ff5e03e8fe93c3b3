"""Requests that Schemathesis makes of our own description, and what is wrong with their answers.

Loaded only by who sends them: it takes half a second.
"""

from contextlib import suppress
from importlib import import_module
from typing import Final, Protocol, cast

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from perdure.core.text import jsonc
from perdure.protocol.endpoint import Endpoint
from perdure.schema.codec import JsonValue
from tests.support.inputs.contract_description import document

SEED: Final = 20_260_301
REQUEST_SECONDS_MAX: Final = 20
STREAM_SECONDS: Final = 1  # of silence, after which a stream is left
STREAMS: Final = frozenset({"durable_stream", "live_stream"})
SCHEMA: Final = schemathesis.openapi.from_dict(document())
HARMLESS: Final = "/bin/true"
# Not imported by name: their types are not all known, and ours are.
_KNOWN: Final = import_module("schemathesis.specs.openapi.checks")
_HEAD: Final[list[object]] = [_KNOWN.status_code_conformance, _KNOWN.content_type_conformance]
_WHOLE: Final[list[object]] = [*_HEAD, _KNOWN.response_schema_conformance]


class Case(Protocol):
    """A request that Schemathesis made, as far as it is used here."""

    path_parameters: dict[str, object]
    body: JsonValue

    @property
    def formatted_path(self) -> str: ...

    def call(
        self, *, base_url: str, session: requests.Session, timeout: float, stream: bool
    ) -> requests.Response: ...

    def validate_response(self, response: object, *, checks: list[object]) -> None: ...


class Operation(Protocol):
    def as_strategy(self, generation_mode: GenerationMode) -> SearchStrategy[Case]: ...


class Server:
    """A server, and one Session in it that requests can be about."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = requests.Session()
        made = self.http.post(f"{url}/api/session", json={}, timeout=REQUEST_SECONDS_MAX)
        self.session_id = str(made.json()["data"]["id"])
        self.asked = 0

    def ask(self, endpoint: Endpoint, mode: str, *, examples: int) -> list[str]:
        """What is wrong with the answers to requests that are made up in this way."""
        operation = cast("Operation", SCHEMA[endpoint.path][endpoint.method])
        generation_mode = GenerationMode(mode)
        wrong: list[str] = []

        @seed(SEED)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )
        @given(operation.as_strategy(generation_mode=generation_mode))
        def asked(case: Case) -> None:
            wrong.extend(self.faults(endpoint, case))

        if generation_mode is GenerationMode.POSITIVE:
            asked()
        else:
            # What takes nothing, or any text, cannot be asked wrongly.
            with suppress(Unsatisfiable):
                asked()
        return wrong

    def faults(self, endpoint: Endpoint, case: Case) -> list[str]:
        """What is wrong with the answer to one request."""
        self._aim(endpoint, case)
        streams = endpoint.success.kind in STREAMS
        answer = case.call(
            base_url=self.url,
            session=self.http,
            timeout=STREAM_SECONDS if streams else REQUEST_SECONDS_MAX,
            stream=streams,
        )
        shown = f"{endpoint.method} {case.formatted_path} -> {answer.status_code}"
        if answer.status_code == requests.codes.internal_server_error:
            return [f"{shown}: a defect"]
        try:
            # What a stream carries has a shape for each event, and no end to wait for.
            case.validate_response(answer, checks=_HEAD if streams else _WHOLE)
        except FailureGroup as failures:
            return [f"{shown}: {failure}" for failure in failures.exceptions]
        return []

    def _aim(self, endpoint: Endpoint, case: Case) -> None:
        """Half of the requests are about the Session that is there; no program is made up."""
        self.asked += 1
        if self.asked % 2 and "sessionID" in case.path_parameters and endpoint.method != "DELETE":
            case.path_parameters["sessionID"] = self.session_id
        if endpoint.operation_id == "v2.pty.create" and jsonc.is_object(case.body):
            case.body["command"] = HARMLESS
