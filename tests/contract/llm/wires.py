"""The wires of all protocols, and how a test is made one of each of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pytest

from tests.contract.llm.protocols.anthropic.wire import WIRE as ANTHROPIC
from tests.contract.llm.protocols.bedrock.wire import WIRE as BEDROCK
from tests.contract.llm.protocols.gemini.wire import WIRE as GEMINI
from tests.contract.llm.protocols.openai_chat.wire import WIRE as CHAT
from tests.contract.llm.protocols.openai_responses.wire import WIRE as RESPONSES
from tests.contract.llm.wire import Wire

WIRES: Final[Mapping[str, Wire]] = {
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "chat": CHAT,
    "gemini": GEMINI,
    "responses": RESPONSES,
}


def each_wire(*names: str) -> pytest.MarkDecorator:
    """A case for each of these wires, or for all."""
    chosen = names or tuple(WIRES)
    return pytest.mark.parametrize("wire", [WIRES[name] for name in chosen], ids=chosen)


def each_row(names: str, of: Callable[[Wire], Iterable[Sequence[object]]]) -> pytest.MarkDecorator:
    """A case for each row of each wire's table."""
    cases = {
        f"{name}-{n}": (wire, *row)
        for name, wire in WIRES.items()
        for n, row in enumerate(of(wire))
    }
    return pytest.mark.parametrize(f"wire, {names}", cases.values(), ids=cases)
