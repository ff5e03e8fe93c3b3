"""docs/compatibility.md says what the table of V1 endpoints says."""

import re
from pathlib import Path

from perdure.protocol.v1.api import V1_API

PAGE = (Path(__file__).parents[4] / "docs/compatibility.md").read_text()


def test_the_page_counts_the_v1_operations() -> None:
    found = re.search(r"V1 operations that are served: (\d+)\.", PAGE)
    assert found is not None
    assert int(found[1]) == len(V1_API)


def test_the_routes_that_are_said_to_be_missing_are_missing() -> None:
    sentence = PAGE[PAGE.index("* `/find`") : PAGE.index("answer 404")]
    missing = re.findall(r"`([/\w{}]+)`", sentence)
    assert missing
    assert [each.path for each in V1_API if each.path.startswith(tuple(missing))] == []
