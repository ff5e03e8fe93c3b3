"""What a caller reads when a request does not fit."""

import pytest

from perdure.protocol import problems
from perdure.protocol.session.message import MessageParams
from perdure.protocol.session.session import CreateSession, PromptSession, SwitchAgent
from perdure.schema.codec import JsonValue, Payload

TEXT = {"text": "hi"}


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (PromptSession, {"prompt": {}}, 'Missing key\n  at ["prompt"]["text"]'),
        (
            PromptSession,
            {"prompt": {"text": 3}},
            'Expected string, got 3\n  at ["prompt"]["text"]',
        ),
        (
            PromptSession,
            {"prompt": TEXT, "id": "xyz"},
            'Expected a string starting with "msg_", got "xyz"\n  at ["id"]',
        ),
        (
            PromptSession,
            {"prompt": TEXT, "delivery": "later"},
            'Expected "steer" | "queue", got "later"\n  at ["delivery"]',
        ),
        (
            PromptSession,
            {"prompt": TEXT, "resume": "no"},
            'Expected boolean | null, got "no"\n  at ["resume"]',
        ),
        (PromptSession, {"prompt": "hi"}, 'Expected PromptInput, got "hi"\n  at ["prompt"]'),
        (
            PromptSession,
            {"prompt": {"text": "", "files": None}},
            'Expected array, got null\n  at ["prompt"]["files"]',
        ),
        (
            PromptSession,
            {"prompt": {"text": "", "files": [{"uri": 1}]}},
            'Expected string, got 1\n  at ["prompt"]["files"][0]["uri"]',
        ),
        (
            CreateSession,
            {"model": {"id": "m", "providerID": "p", "variant": None}},
            'Expected string, got null\n  at ["model"]["variant"]',
        ),
        (
            CreateSession,
            {"location": {"directory": "/", "workspaceID": "zzz"}},
            'Expected a string starting with "wrk_", got "zzz"\n  at ["location"]["workspaceID"]',
        ),
        (SwitchAgent, {"agent": 1}, 'Expected string, got 1\n  at ["agent"]'),
        (SwitchAgent, None, "Expected object, got null"),
        (SwitchAgent, [], "Expected object, got []"),
        (
            MessageParams,
            {"messageID": "xx"},
            'Expected a string starting with "msg_", got "xx"\n  at ["messageID"]',
        ),
    ],
)
def test_a_fault_is_named_with_its_place(kind: type[Payload], value: JsonValue, said: str) -> None:
    assert problems.explain(kind, value) == said


def test_every_fault_is_reported_at_once() -> None:
    value = {"prompt": {"files": [{"uri": 1}]}, "id": "x", "resume": 1}
    assert problems.explain(PromptSession, value).split("\n") == [
        "Missing key",
        '  at ["prompt"]["text"]',
        "Expected string, got 1",
        '  at ["prompt"]["files"][0]["uri"]',
        'Expected a string starting with "msg_", got "x"',
        '  at ["id"]',
        "Expected boolean | null, got 1",
        '  at ["resume"]',
    ]


def test_an_id_with_the_right_prefix_and_a_wrong_body_says_what_is_allowed() -> None:
    said = problems.explain(CreateSession, {"id": "ses_a/b"})
    assert said.startswith("Expected a string matching ^ses_")


def test_a_null_for_an_optional_field_of_the_body_itself_is_no_fault() -> None:
    assert problems.explain(CreateSession, {"id": None, "agent": None, "model": None}) == ""


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    said = problems.explain(SwitchAgent, {"agent": ["x" * 5_000]})
    whole = f'Expected string, got ["{"x" * 5_000}"]\n  at ["agent"]'
    assert said == f"{whole[:1024]}... ({len(whole) - 1024} more chars)"


def test_a_million_faults_cost_no_more_than_the_first_hundred() -> None:
    said = problems.explain(PromptSession, {"prompt": {"text": "", "files": [1] * 1_000_000}})
    assert said.startswith('Expected FileInput, got 1\n  at ["prompt"]["files"][0]')
    assert len(said) < 1_100


def test_numbers_no_client_can_hold_are_shown_in_full() -> None:
    source = {"start": 10**30, "end": 1.5, "text": ""}
    value = {"prompt": {"text": "", "agents": [{"name": "a", "source": source}]}}
    said = problems.explain(PromptSession, value)
    assert f"Expected an integer, got {10**30}" in said
    assert "Expected an integer, got 1.5" in said
