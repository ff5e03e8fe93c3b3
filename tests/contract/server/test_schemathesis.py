"""Every operation of our own description, with what Schemathesis makes of it, sound and spoilt.

A server runs as its users run it. Nothing may be answered with a defect, with a status or a content
type that the operation does not declare, or with a body that does not fit its schema. Streams are
left once their answer has begun. `PERDURE_EXAMPLES` asks for that many requests in each way of
making them, for each operation.
"""

import os
import signal
import subprocess
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

from perdure.protocol.api import API
from perdure.protocol.endpoint import Endpoint
from tests.contract.cli.command import PATIENCE_SECONDS, Installation, address_of
from tests.figures import Figure
from tests.requirements import requirement

if TYPE_CHECKING:
    from tests.contract.server.made_up_requests import Server

EXAMPLES: Final = int(os.environ.get("PERDURE_EXAMPLES", "2"))
OPERATIONS: Final = [each for each in API if each.success.kind != "websocket"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> "Generator[Server]":
    # Only now: it loads Schemathesis.
    from tests.contract.server.made_up_requests import Server

    root = tmp_path_factory.mktemp("described")
    installation = Installation(root)
    installation.variables |= {
        "HOME": str(root),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    arguments = ("serve", "--port", "0", "--no-auth")
    with installation.started(*arguments, stderr=subprocess.DEVNULL) as process:
        yield Server(address_of(process))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


@requirement("S117")
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("endpoint", OPERATIONS, ids=lambda each: each.operation_id)
def test_every_answer_is_one_that_the_description_declares(
    server: "Server", endpoint: Endpoint, mode: str, figure: Figure
) -> None:
    before = server.asked
    assert server.ask(endpoint, mode, examples=EXAMPLES) == []
    figure("requests made up", server.asked - before)
