"""Each answer cut and split at every byte: never half a call, never an error of another kind."""

import random

import pytest

from perdure.llm.aws_event_stream import AwsFrames
from perdure.llm.error import LLMError
from perdure.llm.event import ToolCall
from perdure.llm.protocols.bedrock_converse import BEDROCK_CONVERSE
from tests.contract.llm.bedrock_converse.recordings import RECORDINGS, read, step_all
from tests.figures import Figure


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_split_at_any_byte_changes_nothing(name: str, figure: Figure) -> None:
    body, whole = b"".join(RECORDINGS[name]), step_all(RECORDINGS[name])
    for at in range(len(body) + 1):
        assert read(body[:at], body[at:]) == whole
    figure("byte offsets, Bedrock", len(body))


@pytest.mark.parametrize("name", RECORDINGS)
def test_byte_by_byte_is_the_same_answer(name: str) -> None:
    body = b"".join(RECORDINGS[name])
    assert read(*(bytes((byte,)) for byte in body)) == step_all(RECORDINGS[name])


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_cut_at_any_byte_is_whole_or_fails_without_half_a_call(name: str, figure: Figure) -> None:
    *before, _ = RECORDINGS[name]
    body, whole = b"".join(RECORDINGS[name]), step_all(RECORDINGS[name])
    # Up to here the stop reason has come, and only the counts are missing.
    told_why = len(b"".join(before))
    for at in range(len(body)):
        reader, state = AwsFrames(1_000_000), BEDROCK_CONVERSE.start()
        events = [e for f in reader.feed(body[:at]) for e in BEDROCK_CONVERSE.step(state, f)]
        assert events == whole[: len(events)]
        if at >= told_why:
            assert len([*events, *BEDROCK_CONVERSE.finish(state)]) == len(whole)
            continue
        assert not any(isinstance(e, ToolCall) and not e.provider_executed for e in events)
        with pytest.raises(LLMError, match="before it was complete"):
            BEDROCK_CONVERSE.finish(state)
    figure("byte offsets, Bedrock", len(body))


@pytest.mark.parametrize("name", RECORDINGS)
def test_one_wrong_bit_anywhere_is_noticed(name: str) -> None:
    body = b"".join(RECORDINGS[name])
    chance = random.Random(name)
    for at in range(len(body)):
        damaged = bytearray(body)
        damaged[at] ^= 1 << chance.randrange(8)
        with pytest.raises(LLMError):
            read(bytes(damaged))


@pytest.mark.parametrize("seed", range(300))
def test_random_bytes_are_no_answer(seed: int) -> None:
    with pytest.raises(LLMError):
        read(random.Random(seed).randbytes(seed * 3))
