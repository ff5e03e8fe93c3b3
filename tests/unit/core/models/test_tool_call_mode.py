"""Whose text is read for tool calls."""

import pytest

from perdure.core.models import options, tool_call_mode

NEAR = [
    "http://localhost:11434/v1",
    "http://127.0.0.1:8080/v1",
    "http://[::1]:8080/v1",
    "http://192.168.1.20:1234/v1",
    "http://10.0.0.2/v1",
    "http://ollama:11434/v1",
    "http://box.local:8000/v1",
    "http://host.docker.internal:11434/v1",
]
FAR = [
    "https://api.openai.com/v1",
    "https://openrouter.ai/api/v1",
    "http://8.8.8.8/v1",
    "https://localhost.example.com/v1",
    "https://local.ai/v1",
    "https://user@localhost/v1",
    "not an address",
]


@pytest.mark.parametrize("url", NEAR)
def test_a_server_of_ones_own_is_read_for_printed_calls(url: str) -> None:
    assert tool_call_mode.choose_mode(None, url=url, calls_tools=True) == "printed"
    assert tool_call_mode.choose_mode(None, url=url, calls_tools=False) == "constrained"
    assert tool_call_mode.choose_mode("native", url=url, calls_tools=False) == "native"


@pytest.mark.parametrize("url", [*FAR, None])
def test_a_provider_elsewhere_is_not_unless_somebody_says_so(url: str | None) -> None:
    assert tool_call_mode.choose_mode(None, url=url, calls_tools=True) == "native"
    assert tool_call_mode.choose_mode(None, url=url, calls_tools=False) == "native"
    assert tool_call_mode.choose_mode("printed", url=url, calls_tools=True) == "printed"


@pytest.mark.parametrize("odd", ["", "yes", 5, True, {}, ["printed"]])
def test_an_option_that_makes_no_sense_decides_nothing(odd: object) -> None:
    assert tool_call_mode.choose_mode(odd, url="http://localhost/v1", calls_tools=True) == "printed"
    assert (
        tool_call_mode.choose_mode(odd, url="https://api.example.com", calls_tools=True) == "native"
    )


def test_the_option_is_never_sent() -> None:
    read = options.read_overrides({}, {"toolCalls": "constrained", "reasoningEffort": "low"})
    assert read.options["toolCalls"] == "constrained"
    assert read.body == {}
    sent = options.for_dialect(read.options, "openai_compatible")
    assert sent == {"openai_compatible": {"reasoningEffort": "low"}}
