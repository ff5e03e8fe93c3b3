"""Admission, retries, and which pending prompts a boundary promotes."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import inbox
from perdure.core.session.inbox import Promotion
from perdure.schema.errors import InvalidRequestError, PromptConflictError
from perdure.schema.ids import MessageID, Seq
from perdure.schema.session.prompt import AgentMention, Delivery, FileInput, Prompt, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from tests.fixtures import OTHER, SESSION
from tests.requirements import requirement


def entry(name: str, seq: int, delivery: Delivery = "steer") -> AdmittedPrompt:
    return AdmittedPrompt(
        admitted_seq=Seq(seq),
        id=MessageID(name),
        session_id=SESSION,
        prompt=Prompt(text=name),
        delivery=delivery,
        time_created=seq,
    )


STORED = entry("msg_1", 4)


@requirement("S74")
@pytest.mark.parametrize(
    "asked",
    [
        STORED,
        replace(STORED, admitted_seq=Seq(-1)),
        replace(STORED, time_created=99),
    ],
)
def test_the_same_prompt_again_gets_the_first_receipt(asked: AdmittedPrompt) -> None:
    promoted = replace(STORED, promoted_seq=Seq(9))
    assert inbox.reconcile(STORED, asked) is STORED
    assert inbox.reconcile(promoted, asked).promoted_seq == 9


@requirement("S74")
@pytest.mark.parametrize(
    "asked",
    [
        replace(STORED, session_id=OTHER),
        replace(STORED, delivery="queue"),
        replace(STORED, prompt=Prompt(text="msg_1 ")),
        replace(STORED, prompt=Prompt(text="msg_1", files=())),
        replace(STORED, prompt=Prompt(text="msg_1", agents=(AgentMention(name="a"),))),
    ],
)
def test_any_difference_under_the_same_id_is_a_conflict(asked: AdmittedPrompt) -> None:
    with pytest.raises(PromptConflictError) as caught:
        inbox.reconcile(STORED, asked)
    assert caught.value.message_id == "msg_1"


STEERS = (entry("msg_a", 3), entry("msg_b", 5), entry("msg_c", 9))
QUEUED = entry("msg_q", 4, "queue")


@requirement("S68", "S69", "S12")
@pytest.mark.parametrize(
    ("promotion", "queued", "cutoff", "promoted"),
    [
        ("none", QUEUED, 9, []),
        ("steer", QUEUED, 9, ["msg_a", "msg_b", "msg_c"]),
        ("steer", QUEUED, 8, ["msg_a", "msg_b"]),
        ("steer", QUEUED, 5, ["msg_a", "msg_b"]),
        ("steer", QUEUED, 2, []),
        ("queue", QUEUED, 8, ["msg_q", "msg_a", "msg_b"]),
        ("queue", QUEUED, 2, ["msg_q"]),
        ("queue", None, 8, ["msg_a", "msg_b"]),
    ],
)
def test_a_boundary_promotes(
    promotion: Promotion, queued: AdmittedPrompt | None, cutoff: int, promoted: list[str]
) -> None:
    chosen = inbox.select_promotions(promotion, steers=STEERS, queued=queued, cutoff=Seq(cutoff))
    assert [prompt.id for prompt in chosen] == promoted


def test_an_admitted_prompt_keeps_what_was_said_and_names_each_media_type() -> None:
    given = PromptInput(
        text="see @a.py",
        files=(FileInput(uri="file:///w/a.py", name="a.py"), FileInput(uri="data:,x")),
        agents=(AgentMention(name="plan"),),
    )
    stored = inbox.admit(given)
    assert stored.files is not UNSET
    assert [file.mime for file in stored.files] == ["text/x-python", "text/plain"]
    assert (stored.text, stored.agents) == (given.text, given.agents)
    assert inbox.admit(PromptInput(text="")).files is UNSET


def test_a_prompt_larger_than_the_limit_is_refused_by_its_bytes() -> None:
    inbox.admit(PromptInput(text="x" * limits.PROMPT_TEXT_BYTES_MAX))
    with pytest.raises(InvalidRequestError) as caught:
        inbox.admit(PromptInput(text="é" * (limits.PROMPT_TEXT_BYTES_MAX // 2 + 1)))
    assert caught.value.field == "prompt.text"


def test_an_attachment_without_a_telling_address_is_typed_by_its_name() -> None:
    files = (FileInput(uri="blob:7f", name="plan.md"), FileInput(uri="blob:7f"))
    stored = inbox.admit(PromptInput(text="see", files=files)).files
    assert stored is not UNSET
    assert [file.mime for file in stored] == ["text/markdown", "application/octet-stream"]
