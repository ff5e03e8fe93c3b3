"""The verdict on a load finds each way to break a promise."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.session.event import (
    PromptPromoted,
    RevertCleared,
    RevertStaged,
    SessionEvent,
)
from perdure.schema.session.session import FileDiff, RevertState
from tests.fixtures import SESSION, Facts
from tests.load import verdict
from tests.load.clients import Approval, Promises
from tests.load.verdict import SeenSession

STEP: Final = "msg_step"
PROMOTED_SEQ: Final = 2
Log = list[SessionEvent]


def call(facts: Facts) -> Log:
    called = replace(facts.called(STEP, "c"), tool="bash", input={"command": "echo ask-1 >> f"})
    return [facts.input_started(STEP, "c"), facts.input_ended(STEP, "c"), called]


def answered(facts: Facts) -> Log:
    return [
        facts.admitted("msg_a", "ask 1"),
        facts.promoted("msg_a", "ask 1"),
        facts.step(STEP),
        *call(facts),
        replace(facts.succeeded(STEP, "c"), structured={"exit": 0}),
        facts.ended(STEP),
    ]


def seen(log: Log) -> SeenSession:
    session = SeenSession(id=SESSION, log=[*enumerate(log, 1)], messages=[], inbox=[])
    rows = sorted(session.folded.messages.values(), key=lambda item: item[0])
    session.messages = [codec.to_json_value(message) for _, message in rows]
    return session


def promised(reply: str = "once", admitted: int = 1) -> Promises:
    receipt: JsonObject = {"sessionID": SESSION, "admittedSeq": admitted}
    approval = Approval(session=SESSION, message=STEP, call=ToolCallID("c"), reply=reply)
    return Promises(
        receipts={"msg_a": receipt}, texts={"msg_a": {"ask 1"}}, approvals={"per_1": approval}
    )


def faults(path: Path, session: SeenSession, promises: Promises, lines: str) -> list[str]:
    effects = path / "effects.txt"
    effects.write_text(lines)
    return list(verdict.find_faults([session], promises, effects))


def test_a_load_that_kept_its_promises_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path, seen(answered(Facts())), promised(), "ask-1\n") == []


def without(kind: str) -> Callable[[Log], Log]:
    return lambda log: [event for event in log if type(event).__name__ != kind]


def first(count: int) -> Callable[[Log], Log]:
    return lambda log: log[:count]


def promoted_again(log: Log) -> Log:
    return [*log[:2], log[1], *log[2:]]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (first(1), "nothing came of it"),
        (first(2), "no step followed"),
        (promoted_again, "2 promotions"),
        (first(-1), "is open, with calls"),
        (without("StepStarted"), "never began"),
        (without("ToolSucceeded"), "is still open"),
    ],
)
def test_a_broken_log_is_found(tmp_path: Path, change: Callable[[Log], Log], fault: str) -> None:
    broken = SeenSession(id=SESSION, log=[], messages=[], inbox=[])
    broken.log = [*enumerate(change(answered(Facts())), 1)]
    for seq, event in broken.log:
        # The fold refuses a second promotion.
        if not isinstance(event, PromptPromoted) or seq == PROMOTED_SEQ:
            broken.folded.apply(seq, event)
    found = faults(tmp_path, broken, promised(), "ask-1\n")
    assert any(fault in each for each in found), found


@pytest.mark.parametrize(
    ("promises", "lines", "fault"),
    [
        (promised(), "ask-1\nask-1\n", "happened 2 times"),
        (promised(), "", "is a success with 0 effects"),
        (promised(), "ask-1\nask-1\n", "allowed once, and ask-1 ran 2 times"),
        (promised("reject"), "ask-1\n", "was refused, and ask-1 ran"),
        (promised(admitted=7), "ask-1\n", "not in the log at its sequence"),
    ],
)
def test_a_broken_promise_is_found(
    tmp_path: Path, promises: Promises, lines: str, fault: str
) -> None:
    found = faults(tmp_path, seen(answered(Facts())), promises, lines)
    assert any(fault in each for each in found), found


def reverted(*taken: str, ends: str = "commit") -> Log:
    """A Session whose revert takes back these lines."""
    facts = Facts()
    log = answered(facts)
    patch = "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n" + "".join(f"-{line}\n" for line in taken)
    file = FileDiff(path="f", status="deleted", additions=0, deletions=len(taken), patch=patch)
    staged = RevertState(message_id=MessageID("msg_a"), files=(file,))
    log.append(facts.stamped(RevertStaged, revert=staged))
    if ends == "clear":
        log.append(facts.stamped(RevertCleared))
    return log


@pytest.mark.parametrize(
    ("log", "lines", "fault"),
    [
        (reverted("ask-1"), "", None),
        (reverted("ask-1", ends="clear"), "", None),
        (reverted("ask-1", ends="clear"), "ask-1\n", None),
        (reverted("ask-1"), "ask-1\n", "took ask-1 back, and it is there"),
        (reverted("ask-2"), "", "is a success with 0 effects"),
    ],
)
def test_a_line_is_gone_only_if_a_revert_of_its_own_session_took_it_back(
    tmp_path: Path, log: Log, lines: str, fault: str | None
) -> None:
    found = faults(tmp_path, seen(log), promised(), lines)
    assert len(found) == (fault is not None), found
    assert fault is None or fault in found[0]


def test_a_line_that_a_revert_of_another_session_took_back_is_lost(tmp_path: Path) -> None:
    effects = tmp_path / "effects.txt"
    effects.write_text("")
    other = seen([])
    other.log = [(1, reverted("ask-1")[-1])]
    found = list(verdict.check_effects([seen(answered(Facts())), other], Counter()))
    assert len(found) == 1
    assert "is a success with 0 effects" in found[0]


def test_messages_that_are_not_the_fold_are_found(tmp_path: Path) -> None:
    session = seen(answered(Facts()))
    session.messages[-1]["finish"] = "length"
    found = faults(tmp_path, session, promised(), "ask-1\n")
    assert any("not the fold" in each for each in found), found
