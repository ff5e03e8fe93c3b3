"""The fold of the page gives what the server's projection and the Python client give."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings

from perdure.client.transcript.session import SessionView
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.session.event import SessionEvent
from tests.contract.store.log import test_projector as projector_tests
from tests.contract.store.log.folded import fold
from tests.fixtures import Facts
from tests.support import node
from tests.unit.client.transcript.test_messages import as_wire, projected, without_cursors
from tests.web import browser

_BUNDLE = """
const { createRequire } = require("node:module")
const { buildSync } = createRequire(process.argv[1] + "/package.json")("esbuild")
buildSync({ entryPoints: [process.argv[2]], outfile: process.argv[3], bundle: true, format: "esm",
  platform: "node", logLevel: "error" })
"""


class PageFold:
    """The fold of the page, in one process of Node."""

    def __init__(self, script: Path) -> None:
        self._child = subprocess.Popen(
            [node.node(), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def fold(self, snapshot: JsonObject, events: list[JsonObject]) -> JsonObject:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(codec.encode({"snapshot": snapshot, "events": events}) + b"\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def end(self) -> None:
        self._child.kill()
        self._child.communicate()


@pytest.fixture(scope="module")
def page_fold(tmp_path_factory: pytest.TempPathFactory) -> Generator[PageFold]:
    script = tmp_path_factory.mktemp("fold") / "fold.mjs"
    asyncio.run(bundle(script))
    running = PageFold(script)
    yield running
    running.end()


async def bundle(script: Path) -> None:
    packages = await browser.installed() / "node_modules"
    driver = Path(__file__).with_name("fold_driver.ts")
    code, told = await node.run(node.node(), "-e", _BUNDLE, str(packages), str(driver), str(script))
    assert code == 0, told


def begun(log: list[SessionEvent]) -> JsonObject:
    """The snapshot of a Session of which nothing is known yet."""
    session = codec.to_json_value(fold(log[:1]).session)
    return {"session": session, "messages": [], "inbox": [], "seq": -1, "cursor": {}}


def python_view(log: list[SessionEvent]) -> SessionView:
    view = SessionView(cast("JsonObject", json.loads(codec.encode(begun(log)))))
    for seq, event in enumerate(log):
        view.apply(as_wire(seq, event))
    return view


def check(page_fold: PageFold, log: list[SessionEvent]) -> None:
    told = page_fold.fold(begun(log), [as_wire(seq, event) for seq, event in enumerate(log)])
    view = python_view(log)
    assert told["wrong"] == []
    assert told["messages"] == as_json(list(view.messages))
    assert told["info"] == as_json(view.info)
    assert (told["inbox"], told["todos"]) == (as_json(view.inbox), as_json(view.todos))
    assert (told["notice"], told["seq"]) == (view.notice, view.seq)
    # An exclusion moves the message in the plain fold, which no list of messages does.
    expected = {message["id"]: message for message in projected(fold(log))}
    assert {it["id"]: it for it in without_cursors(told["messages"])} == as_json(expected)


def as_json(value: Any) -> Any:
    return json.loads(codec.encode(value))


@pytest.mark.parametrize("make", projector_tests.CORPUS, ids=lambda make: make.__name__)
def test_every_kind_of_event_is_folded_as_elsewhere(
    page_fold: PageFold, make: Callable[[Facts], list[SessionEvent]]
) -> None:
    facts = Facts()
    check(page_fold, [facts.created(), *make(facts)])


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(log=projector_tests.logs())
def test_any_valid_log_is_folded_as_elsewhere(page_fold: PageFold, log: list[SessionEvent]) -> None:
    check(page_fold, log)


def test_a_fragment_counts_once_and_only_while_its_part_is_open(page_fold: PageFold) -> None:
    facts = Facts()
    log: list[SessionEvent] = [facts.created()]
    events: list[JsonObject] = [as_wire(0, log[0])]
    message = {"assistantMessageID": "msg_1", "sessionID": "ses_1", "timestamp": 5}
    model = {"id": "m", "providerID": "p"}
    place = {"aggregateID": "ses_1", "version": 1}

    def durable(seq: int, type: str, **data: object) -> JsonObject:
        return {
            "type": f"session.next.{type}",
            "durable": {**place, "seq": seq},
            "data": {**message, **data},
        }

    def delta(cursor: int, text: str) -> JsonObject:
        data = {**message, "textID": "t", "delta": text, "cursor": cursor}
        return {"type": "session.next.text.delta", "data": data}

    events += [
        durable(1, "step.started", agent="build", model=model),
        durable(2, "text.started", textID="t"),
        delta(1, "One "),
        delta(1, "One "),
        delta(2, "two"),
        delta(1, "One "),
    ]
    told = page_fold.fold(begun(log), events)
    assert told["messages"][0]["content"] == [
        {"type": "text", "id": "t", "text": "One two", "cursor": 2}
    ]
    events += [durable(3, "text.ended", textID="t", text="One two."), delta(3, " three")]
    told = page_fold.fold(begun(log), events)
    assert told["messages"][0]["content"] == [{"type": "text", "id": "t", "text": "One two."}]
