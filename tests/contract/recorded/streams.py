"""Streams as recordings have them: types in their order, and how orders and shapes differ.

Invariant: what is compared is all that was told; a heartbeat alone may come at any time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.recorded.deviations import STATUS
from tests.contract.recorded.replay import Replay
from tests.support.api import Frame, Stream

HEARTBEAT: Final = ": heartbeat"
_MERGED: Final = (".delta", "plugin.added")
"""Of these, those that follow each other are one."""


@dataclass(slots=True)
class Told:
    """One live stream as a whole."""

    stream: Stream
    frames: list[Frame] = field(default_factory=list[Frame])

    async def next(self) -> Frame:
        frame = await self.stream.frame()
        assert frame is not None, "the stream ended"
        self.frames.append(frame)
        return frame

    async def until(self, type: str, **data: JsonValue) -> JsonObject:
        """The next event of that type whose data has these values."""
        while True:
            frame = await self.next()
            if frame.is_comment or short(frame.event["type"]) != type:
                continue
            if data.items() <= frame.event["data"].items():
                return frame.event

    @property
    def events(self) -> list[JsonObject]:
        return [frame.event for frame in self.frames if not frame.is_comment]

    @property
    def lines(self) -> list[str]:
        """As in the recordings: Sessions by the order in which they appear."""
        known: dict[str, str] = {}
        lines: list[str] = []
        for frame in self.frames:
            session = "" if frame.is_comment else frame.event["data"].get("sessionID", "")
            if session:
                known.setdefault(session, f"<ses{len(known) + 1}>")
            what = HEARTBEAT if frame.is_comment else short(frame.event["type"])
            lines.append(f"{what} {known.get(session, '')}".rstrip())
        return lines


def short(type: str) -> str:
    return type.removeprefix("session.")


def types(events: Iterable[JsonObject]) -> list[str]:
    """In their order; deltas that follow each other are one."""
    return merged(short(event["type"]) for event in events)


def merged(lines: Iterable[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if not (found[-1:] == [line] and line.partition(" ")[0].endswith(_MERGED)):
            found.append(line)
    return found


def order_differences(recorded: Sequence[str], ours: Sequence[str]) -> list[str]:
    """What is to be taken out of the recorded order, and put in where, to make it ours."""
    found: list[str] = []
    matcher = SequenceMatcher(None, recorded, ours, autojunk=False)
    for kind, begin, end, our_begin, our_end in matcher.get_opcodes():
        if kind != "equal":
            found += _changes("missing", recorded, begin, end)
            found += _changes("new", ours, our_begin, our_end)
    return found


def _changes(how: str, lines: Sequence[str], begin: int, end: int) -> list[str]:
    before = ["the beginning", *lines]
    return [f"{lines[at]} is {how} after {before[at]}" for at in range(begin, end)]


def outline(message: JsonObject) -> str:
    """Its type, those of its parts with their states, and how it ended."""
    if message["type"] != "assistant":
        return message["type"]
    parts = (
        f"{part['type']} {part.get('state', {}).get('status', '')}".rstrip()
        for part in message["content"]
    )
    return ", ".join(("assistant", *parts, message.get("finish", "open")))


def event_differences(stream: str, event: JsonObject, shapes: JsonObject) -> list[str]:
    key = f"{stream} {short(event['type'])}"
    if key == f"live {STATUS}":
        return []
    if key not in shapes:
        return [f"{key} is new"]
    return [f"{key}: {difference}" for difference in Replay.compared(shapes[key], event)]
