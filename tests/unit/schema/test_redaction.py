"""Secrets of every kind are removed from what is logged and shown; what only looks alike stays."""

import json
import re
import time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.schema import redaction
from tests.figures import Figure
from tests.unit.schema.secret_samples import KINDS, READABLE, TOKENS, WORD

MARKED: Final = re.compile("«([^»]*)»")


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_token_is_removed_wherever_it_stands(token: str) -> None:
    for before, after in (("", ""), ("found ", " here"), ('"', '"'), ("(", ")"), ("url/", "\n")):
        assert redaction.redact(f"{before}{token}{after}") == f"{before}[redacted]{after}"


@pytest.mark.parametrize("marked", [each for samples in KINDS.values() for each in samples])
def test_a_secret_is_removed_and_what_is_around_it_stays(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    expected = MARKED.sub("[redacted]", marked)
    assert redaction.redact(text) == expected
    # In a log line, and in JSON.
    for before, after in (("12:30 WARNING x: ", ""), ("(", ")"), ("a\n", "\nb")):
        shown = redaction.redact(f"{before}{text}{after}")
        assert not any(secret in shown for secret in MARKED.findall(marked))


@pytest.mark.parametrize("marked", [each for samples in KINDS.values() for each in samples])
def test_a_secret_is_removed_inside_of_json(marked: str) -> None:
    message = marked.replace("«", "").replace("»", "")
    text = json.dumps({"message": message}, ensure_ascii=False)
    shown = redaction.redact(text)
    for secret in MARKED.findall(marked):
        assert json.dumps(secret)[1:-1] not in shown


@pytest.mark.parametrize("text", READABLE)
def test_what_only_looks_alike_stays_readable(text: str) -> None:
    assert redaction.redact(text) == text


def test_there_are_at_least_three_hundred_forms(figure: Figure) -> None:
    forms = len(TOKENS) + sum(map(len, KINDS.values()))
    figure("kinds of secret", forms)
    assert forms >= 300


def test_what_follows_a_secret_stays_readable() -> None:
    text = 'connect {"password": "a b", "host": "db1"} to https://u:p@host/x?key=abcd&page=2, ok'
    assert redaction.redact(text) == (
        'connect {"password": "[redacted]", "host": "db1"} to'
        " https://[redacted]@host/x?key=[redacted]&page=2, ok"
    )


PIECES: Final = (
    *("password", "token", "key", "auth", "DB_PASSWORD", "Authorization", "cookie", "d", "name"),
    *("=", ": ", ":", " ", "\n", "\\n", "\\", '"', "'", '\\"', "`", ",", ", ", ";", "&", "?", "#"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "</",
        "//",
        "://",
        "@",
        "%3D",
        "%26",
        "%22",
        "|",
        "$",
    ),
    *("--", "-", "-p", "-u", "curl ", "mysql ", "sshpass ", "docker login ", "sqlplus ", "\\\n"),
    *("hunter2", "a", "is ", "null", "a:b", WORD, "sk-abcdef12", "Bearer ", "ENV ", "machine h "),
    *(
        "login joe ",
        "value",
        "[redacted]",
        "[",
        "x.y",
        "1",
        "secrets",
        "${A}",
        "h:1:d:u:",
        "'\"'\"'",
    ),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "<password>", "define(", "|\n  "),
)
"""What secrets and the texts around them are made of."""


@settings(max_examples=1_000)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redaction.redact(text)
    assert redaction.redact(once) == once


@settings(max_examples=150, deadline=None)
@given(
    before=st.lists(st.sampled_from(PIECES), max_size=2).map("".join),
    unit=st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join),
)
def test_repeated_text_is_redacted_in_linear_time(before: str, unit: str) -> None:
    text = before + unit * (60_000 // len(unit))
    began = time.thread_time()
    redaction.redact(text)
    # Quadratic time would be many seconds.
    assert time.thread_time() - began < 1.5


@pytest.mark.parametrize("marked", [each for samples in KINDS.values() for each in samples])
def test_many_secrets_are_redacted_in_linear_time(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    for joint in ("", " ", "\n"):
        hostile = (text + joint) * (60_000 // len(text))
        began = time.thread_time()
        redaction.redact(hostile)
        assert time.thread_time() - began < 1.5


def test_a_known_secret_is_removed_as_it_stands_in_an_address() -> None:
    assert redaction.redact("x p@ss/1 y p%40ss%2F1", ["p@ss/1"]) == "x [redacted] y [redacted]"


def test_a_very_long_message_is_cut_at_a_blank_and_says_so() -> None:
    secret = f"sk-{WORD}"
    for length in range(32 * 1024 - 60, 32 * 1024 + 60, 7):
        shown = redaction.redact_message(f"{'x ' * (length // 2)}{secret} {'y ' * 50_000}")
        assert len(shown) < 34 * 1024
        assert "sk-" not in shown
        assert shown.endswith(" more characters left out]")
    assert redaction.redact_message("password=hunter2") == "password=[redacted]"
    assert "sk-" not in redaction.redact_message(secret * 5_000)


def test_words_of_a_command_are_redacted_together() -> None:
    words = (
        "tool",
        "--token",
        "hunter2",
        "--password",
        "--user",
        "joe",
        "--key=abc",
        "DB_PASSWORD=x",
    )
    assert redaction.redact_words(words) == (
        *("tool", "--token", "[redacted]", "--password", "--user", "joe", "--key=abc"),
        "DB_PASSWORD=[redacted]",
    )
    assert redaction.redact_words(("/usr/bin/curl", "-u", "a:b", "-s")) == (
        *("/usr/bin/curl", "-u", "a:[redacted]", "-s"),
    )
    assert redaction.redact_words(("mkdir", "-p", "a")) == ("mkdir", "-p", "a")
    assert redaction.redact_words(()) == ()
