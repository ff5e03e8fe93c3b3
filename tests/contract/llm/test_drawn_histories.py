"""No history makes a request that a provider refuses: 5,000 of them for each wire protocol.

`PERDURE_EXAMPLES` asks for another number. A failure names its seed: `request(kept, seed)` is it.
"""

import os
from typing import Final

import pytest

from tests.contract.llm.drawn_histories import request
from tests.contract.llm.providers import PROVIDERS
from tests.figures import Figure
from tests.requirements import requirement

EXAMPLES: Final = int(os.environ.get("PERDURE_EXAMPLES", "5000"))
PARTS: Final = 4


@requirement("S161", "S197", "S198")
@pytest.mark.timeout(max(300, EXAMPLES // 20))
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_history_is_refused(provider: str, part: int, figure: Figure) -> None:
    asked, seeds = PROVIDERS[provider], range(part, EXAMPLES, PARTS)
    found = ((seed, asked.faults_of(request(asked.kept, seed), way=seed)) for seed in seeds)
    refused = ((seed, faults) for seed, faults in found if faults)
    assert next(refused, None) is None
    figure("drawn histories", len(seeds))
