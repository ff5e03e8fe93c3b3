"""Search among the tools of MCP servers, for a model that is not offered all of them.

Words of the query count in the name three times as much as in the description, and a word that few
tools have counts more. The order depends on nothing else, so the same query gives the same answer.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core.mcp.tool_list import McpTool
from perdure.lazy_pattern import lazy_pattern

_WORD: Final = lazy_pattern(r"[a-z0-9]+")
_CAMEL: Final = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME_WEIGHT: Final = 3


def find_tools(tools: Mapping[str, McpTool], query: str, limit: int) -> Sequence[str]:
    """The names of the tools that fit the query, the best first."""
    wanted = set(_words(query))
    counted = {name: _count_words(name, tool) for name, tool in tools.items()}
    spread = Counter(word for words in counted.values() for word in words.keys() & wanted)
    rarity = {word: math.log1p(len(tools) / count) for word, count in spread.items()}
    scores = {
        name: sum(rarity[word] * math.log1p(words[word]) for word in words.keys() & wanted)
        for name, words in counted.items()
    }
    found = [name for name, score in scores.items() if score > 0]
    return sorted(found, key=lambda name: (-scores[name], name))[:limit]


def _count_words(name: str, tool: McpTool) -> Counter[str]:
    words = Counter(_words(tool.description))
    for word in {*_words(name), *_words(tool.name)}:
        words[word] += _NAME_WEIGHT
    return words


def _words(text: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub(" ", text).lower())
