"""Answers of the scripted provider that are sent piece by piece, when a test says so."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from tests.support.scripted_provider import Reply

WORDS: Final = ("Once ", "upon ", "a \U0001f600 ", "time ", "there ", "was ", "a ", "client.")
THOUGHTS: Final = ("hm", ", ", "\u00fc", "ber")


@dataclass(slots=True)
class GatedAnswers:
    """Makes them. Before each piece stands one of the gates, in order."""

    gates: list[asyncio.Event] = field(default_factory=list[asyncio.Event])

    def gated(self, reply: Reply) -> Reply:
        pieces: list[bytes | asyncio.Event] = []
        for piece in reply.pieces:
            self.gates.append(asyncio.Event())
            pieces += [self.gates[-1], piece]
        return replace(reply, pieces=tuple(pieces))
