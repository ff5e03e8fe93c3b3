"""What `perdure context` says of the window."""

import pytest

from perdure.cli.commands.session import context
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
            "6,000 of 32,000 tokens (18 %); compaction starts at 24,000, in 18,000 tokens",
        ),
        (
            WindowInfo(tokens=24_000, compacts=False, context=32_000, request_max=24_000),
            "24,000 of 32,000 tokens (75 %); compaction starts at 24,000, in 0 tokens",
        ),
        (
            WindowInfo(tokens=25_000, compacts=True, context=32_000, request_max=24_000),
            "25,000 of 32,000 tokens (78 %): the next turn starts with a compaction",
        ),
        (
            WindowInfo(tokens=25_000, compacts=False, context=32_000, request_max=24_000),
            "25,000 of 32,000 tokens (78 %): over the limit of 24,000, and no compaction is due",
        ),
        (
            WindowInfo(tokens=6_000, compacts=False),
            "6,000 tokens; the context size of this model is not known",
        ),
    ],
)
def test_the_window_is_told_in_one_line(window: WindowInfo, line: str) -> None:
    assert said(window) == f"window   {line}"
