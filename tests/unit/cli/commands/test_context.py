"""What `perdure context` says of the window."""

import pytest

from perdure.cli.commands import context
from perdure.schema.models.model import ModelRef
from perdure.schema.session.request_preview import ProviderContext, ProviderRequest, WindowInfo

REQUEST = ProviderRequest(
    agent="build",
    model=ModelRef(id="m", provider_id="p"),
    system=("Be brief.",),
    messages=(),
    tools=(),
    options={},
)


def said(window: WindowInfo) -> str:
    found = ProviderContext(
        sources=(),
        messages=(),
        source_details=(),
        pending_prompts=0,
        request=REQUEST,
        window=window,
    )
    return [*context.summary(found)][-1]


@pytest.mark.parametrize(
    ("window", "line"),
    [
        (
            WindowInfo(tokens=6_000, compacts=False, context=32_000, request_max=24_000),
            "6,000 of 32,000 tokens (18 %); compaction begins at 24,000, which is 18,000 away",
        ),
        (
            WindowInfo(tokens=24_000, compacts=False, context=32_000, request_max=24_000),
            "24,000 of 32,000 tokens (75 %); compaction begins at 24,000, which is 0 away",
        ),
        (
            WindowInfo(tokens=25_000, compacts=True, context=32_000, request_max=24_000),
            "25,000 of 32,000 tokens (78 %): the next turn begins with a compaction",
        ),
        (
            WindowInfo(tokens=25_000, compacts=False, context=32_000, request_max=24_000),
            "25,000 of 32,000 tokens (78 %): over 24,000, and no compaction will come",
        ),
        (
            WindowInfo(tokens=6_000, compacts=False),
            "6,000 tokens; nobody knows how many this model takes",
        ),
    ],
)
def test_the_window_is_told_in_one_line(window: WindowInfo, line: str) -> None:
    assert said(window) == f"window   {line}"
