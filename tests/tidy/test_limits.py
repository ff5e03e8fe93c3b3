"""The list of limits is true: each of them bounds something."""

import re
from typing import Final

from perdure.core import limits
from tests.tidy import source_tree

FOLDER: Final = "core/limits/"
OF_THE_CONTRACT: Final = {
    "PAGE_ITEMS_MAX": "stands in protocol/, which cannot know this list; a test compares both",
    "PTY_TITLE_CHARS_MAX": "as well",
}


def test_each_limit_bounds_something() -> None:
    elsewhere = {
        word
        for module in source_tree.modules()
        if not module.name.startswith(FOLDER)
        for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", module.text)
    }
    stated = {name for name in vars(limits) if name.isupper()}
    assert len(stated) > 300
    assert stated - elsewhere - OF_THE_CONTRACT.keys() == set()


def test_each_limit_is_a_number_that_can_be_kept() -> None:
    found = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert [name for name, value in found.items() if not 0 < value < 2**53] == []
