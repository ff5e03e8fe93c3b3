"""docs/compatibility.md says what the table of V1 endpoints says."""

import re
from pathlib import Path

from perdure.protocol.v1 import refused
from perdure.protocol.v1.api import V1_API

PAGE = (Path(__file__).parents[4] / "docs/compatibility.md").read_text()
REFUSED = PAGE.partition("## V1 operations that are not offered")[2].partition("\n## ")[0]


def test_the_page_counts_the_v1_operations() -> None:
    found = re.search(r"(\d+) of (\d+) operations; the other (\d+) answer why not", PAGE)
    assert found is not None
    refusing = len(refused.ENDPOINTS)
    counted = (len(V1_API) - refusing, len(V1_API), refusing)
    assert tuple(map(int, found.groups())) == counted


def test_the_page_names_each_operation_that_is_not_offered_with_its_reason() -> None:
    told = {
        (operation, reason)
        for row in re.findall(r"^\| (`.+) \| (.+) \|$", REFUSED, re.MULTILINE)
        for operation in re.findall(r"`([^`]+)`", row[0])
        for reason in [row[1]]
    }
    assert told == {(f"{method} {path}", reason) for method, path, _, reason in refused.REASONS}
