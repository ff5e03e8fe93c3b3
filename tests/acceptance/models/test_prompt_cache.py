"""What a loop of tools costs with the provider's prompt cache, counted from what is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import DIALECTS
from tests.acceptance.two_providers import paired
from tests.figures import Figure
from tests.support.scripted_provider import Reply, ScriptedProvider

CALLS: Final = 20
RESULT_BYTES: Final = 2_048
LOOK_BACK: Final = 20
"""Blocks before a mark in which the provider looks for what it keeps."""
INPUT, WRITE, READ = 3.0, 3.75, 0.3
"""US dollars for a million tokens, as Anthropic lists them for Sonnet with five minutes."""


@dataclass
class Spent:
    """Bytes of requests by what they cost; a token is about four of them."""

    plain: int = 0
    written: int = 0
    read: int = 0

    @property
    def total(self) -> int:
        return self.plain + self.written + self.read

    @property
    def cached_percent(self) -> float:
        return 100 * (self.written + self.read) / self.total

    @property
    def dollars(self) -> float:
        priced = self.plain * INPUT + self.written * WRITE + self.read * READ
        return priced / 4 / 1_000_000


def blocks_of(body: JsonObject) -> Iterator[tuple[bytes, bool]]:
    """The blocks of a request in the order in which they are kept, and whether each is marked."""
    messages = [block for message in body["messages"] for block in message["content"]]
    for block in (*body["tools"], *body["system"], *messages):
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        yield codec.encode(bare), "cache_control" in block


def spend(requests: Sequence[JsonObject]) -> Spent:
    """What the provider counts, by its documented rules: it keeps the request up to each mark."""
    kept: set[bytes] = set()
    spent = Spent()
    for body in requests:
        blocks = list(blocks_of(body))
        begins = [b"".join(bare for bare, _ in blocks[: at + 1]) for at in range(len(blocks))]
        marks = [at for at, (_, marked) in enumerate(blocks) if marked]
        found = (
            len(begins[at])
            for mark in marks
            for at in range(mark, max(mark - LOOK_BACK, -1), -1)
            if begins[at] in kept
        )
        read = max(found, default=0)
        last = len(begins[marks[-1]])
        spent.read += read
        spent.written += last - read
        spent.plain += len(begins[-1]) - last
        kept |= {begins[at] for at in marks}
    return spent


def marked_at_the_prompt(body: JsonObject) -> JsonObject:
    """The same request with a mark at the user's prompt instead of those in the conversation."""
    messages = codec.decode_any(codec.encode(body["messages"]))
    for block in (block for message in messages for block in message["content"]):
        block.pop("cache_control", None)
    messages[0]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return body | {"messages": messages}


def asked(number: int) -> Reply:
    """The answer that makes one more call; equal ones would be asked about."""
    command = f"head -c {RESULT_BYTES} /dev/zero | tr '\\0' {chr(ord('a') + number)}"
    call_id = f"toolu_01AAAAAAAAAAAAAAAAAA{number:02}"
    return DIALECTS["anthropic-messages"].asks(call_id, "bash", {"command": command})


async def test_a_loop_of_tools_is_read_from_the_cache(
    tmp_path: Path, provider: ScriptedProvider, figure: Figure
) -> None:
    speaks = DIALECTS["anthropic-messages"]
    async with paired(speaks.name, tmp_path, provider) as pair:
        pair.other.then(*map(asked, range(CALLS)), speaks.says("Done."))
        session = await pair.api.create()
        await pair.api.ask(session, "go")
    requests = [request.body for request in pair.other.requests]
    assert len(requests) == CALLS + 1
    for before, now in pairwise(requests):
        sent, sends = ([bare for bare, _ in blocks_of(body)] for body in (before, now))
        assert sends[: len(sent)] == sent
    whole = spend(requests)
    # All that an earlier request has sent is read, and only what is new is written.
    sizes = [sum(len(bare) for bare, _ in blocks_of(body)) for body in requests]
    assert whole.read == sum(sizes[:-1])
    assert whole.cached_percent >= 95
    figure("percent of a tool loop that the cache holds", round(whole.cached_percent))
    figure("percent of a tool loop read from the cache", round(100 * whole.read / whole.total))
    before = spend([marked_at_the_prompt(body) for body in requests])
    figure("cost of a tool loop in millionths of a dollar", round(whole.dollars * 1_000_000))
    figure("the same, marked at the prompt alone", round(before.dollars * 1_000_000))
    assert whole.dollars < before.dollars
