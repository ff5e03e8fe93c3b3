"""Malformed, hostile and huge input to the tools that are not about files: an error to read.

Nothing is asked of a person, looked up, connected to or started for input that cannot be meant.
The file tools have a table of their own (test_hostile_file_input).
"""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.host.http.web_pages import WebClient
from perdure.host.process.runner import LocalProcesses
from perdure.ports import OutputSink, ProcessResult
from perdure.schema.codec import JsonObject
from perdure.tools.environment import WebAccess
from perdure.tools.web.search_backend import SearchQuery
from tests.contract.tools.builtin import test_hostile_file_input as file_tools
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement

LONE = "\ud800"
NOT_TEXT: list[object] = [None, 7, True, ["x"], {"a": 1}]
INVALID = "Invalid tool input"


class Nobody(LocalProcesses):
    """Counts what would have left this process. It searches the web as well."""

    name = "nobody"

    def __init__(self) -> None:
        self.started = 0
        self.searched = 0

    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        self.started += 1
        return await super().run_into(
            sink,
            arguments,
            directory=directory,
            environment=environment,
            timeout_seconds=timeout_seconds,
        )

    async def search(self, query: SearchQuery) -> str:
        self.searched += 1
        return "found"


Row = tuple[str, JsonObject, str]


def bash(command: object = "true", **more: object) -> Row:
    return ("bash", {"command": command, **more}, INVALID)


def todo(**fields: object) -> JsonObject:
    return {"content": "a", "status": "pending", "priority": "low", **fields}


def option(label: object = "Yes") -> JsonObject:
    return {"label": label, "description": "d"}


def question(**fields: object) -> JsonObject:
    return {"question": "Why?", "header": "Why", "options": [option()], **fields}


BASH: list[Row] = [
    ("bash", {}, INVALID),
    bash(""),
    *(bash(value) for value in NOT_TEXT),
    bash(timeout=0),
    bash(timeout=-5),
    bash(timeout="1000"),
    bash(timeout=1.5),
    ("bash", {"command": "true", "timeout": limits.BASH_TIMEOUT_MILLIS_MAX + 1}, "at most"),
    bash(timeout=10**30),
    bash(workdir=""),
    bash(workdir=7),
    ("bash", {"command": "echo a\0b"}, "NUL"),
    ("bash", {"command": LONE}, "Unicode"),
    ("bash", {"command": "true", "workdir": "a\0b"}, "NUL"),
    ("bash", {"command": "true", "workdir": LONE}, "Unicode"),
    ("bash", {"command": "true", "workdir": "../outside"}, "outside the project"),
    ("bash", {"command": "true", "workdir": "gone"}, "no such file"),
    ("bash", {"command": "true", "workdir": "text.txt"}, "not a directory"),
    ("bash", {"command": "true", "workdir": "x" * (limits.PATH_CHARS_MAX + 1)}, "longer than"),
    ("bash", {"command": "x" * (limits.BASH_COMMAND_BYTES_MAX + 1)}, "longer than"),
]
WEBFETCH: list[Row] = [
    ("webfetch", {}, INVALID),
    ("webfetch", {"url": ""}, INVALID),
    *(("webfetch", {"url": value}, INVALID) for value in NOT_TEXT),
    *(
        ("webfetch", {"url": "https://a.example/", "timeout": value}, INVALID)
        for value in (0, -1, "5", limits.WEB_SECONDS_MAX + 1, float("inf"))
    ),
    ("webfetch", {"url": "https://a.example/", "format": "pdf"}, INVALID),
    ("webfetch", {"url": "example.com"}, "URL"),
    ("webfetch", {"url": "file:///etc/passwd"}, "http"),
    ("webfetch", {"url": "gopher://a.example/"}, "http"),
    ("webfetch", {"url": "http://me:pass@a.example/"}, "URL"),
    ("webfetch", {"url": "http://a.example/\r\nhost: b"}, "URL"),
    ("webfetch", {"url": "http://a.example/\0"}, "URL"),
    ("webfetch", {"url": f"http://{LONE}.example/"}, "Unicode"),
    ("webfetch", {"url": "http://" + "a" * limits.WEB_URL_CHARS_MAX}, "longer than"),
    ("webfetch", {"url": "http://" + "1" * 1_000_000}, "longer than"),
]
WEBSEARCH: list[Row] = [
    ("websearch", {}, INVALID),
    ("websearch", {"query": ""}, INVALID),
    *(("websearch", {"query": value}, INVALID) for value in NOT_TEXT),
    ("websearch", {"query": "x" * (limits.WEB_SEARCH_QUERY_CHARS_MAX + 1)}, INVALID),
    ("websearch", {"query": "a", "numResults": 0}, INVALID),
    ("websearch", {"query": "a", "numResults": 10**9}, INVALID),
    ("websearch", {"query": "a", "type": "slow"}, INVALID),
    ("websearch", {"query": "a", "livecrawl": "yes"}, INVALID),
    ("websearch", {"query": "a", "contextMaxCharacters": -1}, INVALID),
    ("websearch", {"query": LONE}, "Unicode"),
]
TODOWRITE: list[Row] = [
    ("todowrite", {}, INVALID),
    *(("todowrite", {"todos": value}, INVALID) for value in (None, 7, "x", {"a": 1}, ["x"], [7])),
    ("todowrite", {"todos": [todo(content="")]}, INVALID),
    ("todowrite", {"todos": [todo(status=None)]}, INVALID),
    ("todowrite", {"todos": [todo(priority=["high"])]}, INVALID),
    ("todowrite", {"todos": [{"content": "a"}]}, INVALID),
    ("todowrite", {"todos": [todo()] * (limits.TODOS_MAX + 1)}, INVALID),
    ("todowrite", {"todos": [todo(content="x" * limits.TODOS_BYTES_MAX)]}, "larger than"),
    ("todowrite", {"todos": [todo(content=LONE)]}, "Unicode"),
]
QUESTION: list[Row] = [
    ("question", {}, INVALID),
    ("question", {"questions": []}, INVALID),
    *(("question", {"questions": value}, INVALID) for value in (None, 7, "x", {"a": 1}, ["x"])),
    ("question", {"questions": [question(question="")]}, INVALID),
    ("question", {"questions": [question(options="yes")]}, INVALID),
    ("question", {"questions": [question(options=[{"label": "a"}])]}, INVALID),
    ("question", {"questions": [question(options=[option("")])]}, INVALID),
    ("question", {"questions": [question(multiple="yes")]}, INVALID),
    (
        "question",
        {"questions": [question(options=[option()] * (limits.QUESTION_OPTIONS_MAX + 1))]},
        INVALID,
    ),
    ("question", {"questions": [question()] * (limits.QUESTIONS_PER_REQUEST_MAX + 1)}, INVALID),
    (
        "question",
        {"questions": [question(question="x" * limits.QUESTION_INPUT_BYTES_MAX)]},
        "larger than",
    ),
    ("question", {"questions": [question(question=LONE)]}, "Unicode"),
]
SKILL: list[Row] = [
    ("skill", {}, INVALID),
    ("skill", {"name": ""}, INVALID),
    *(("skill", {"name": value}, INVALID) for value in NOT_TEXT),
    ("skill", {"name": "../../etc/passwd"}, "no skill"),
    ("skill", {"name": "a\0b"}, "no skill"),
    ("skill", {"name": LONE}, "Unicode"),
    ("skill", {"name": "x" * 1_000_000}, "no skill"),
]
UNKNOWN: list[Row] = [
    ("", {}, "Unknown tool"),
    ("rm", {"path": "/"}, "Unknown tool"),
    ("Bash", {"command": "true"}, "Unknown tool"),
    ("bash\0", {"command": "true"}, "Unknown tool"),
    ("x" * 100_000, {}, "Unknown tool"),
]
TABLE = BASH + WEBFETCH + WEBSEARCH + TODOWRITE + QUESTION + SKILL + UNKNOWN


@pytest.fixture
def nobody() -> Nobody:
    return Nobody()


@pytest.fixture
def closed(tmp_path: Path, nobody: Nobody) -> Generator[ToolBench]:
    """A Location whose doors to the world are counted."""
    bench = ToolBench(tmp_path)
    bench.write({"text.txt": "one\n"})
    bench.environment = replace(
        bench.environment,
        processes=nobody,
        web=WebAccess(pages=WebClient(), search=lambda _: nobody),
    )
    with bench.open():
        yield bench


def test_every_built_in_tool_has_rows_in_a_table(closed: ToolBench) -> None:
    with_rows = {name for name, _, _ in (*TABLE, *file_tools.TABLE)}
    assert closed.registry.names() - with_rows == set()


@requirement("S166", "S170", "S180")
@pytest.mark.parametrize(
    ("name", "input", "told"),
    TABLE,
    ids=[f"{n}-{row[0][:20]!r}-{row[2]}" for n, row in enumerate(TABLE)],
)
async def test_bad_input_is_told_and_nothing_is_done(
    closed: ToolBench, nobody: Nobody, name: str, input: JsonObject, told: str
) -> None:
    async with asyncio.timeout(10):
        message = await closed.error(name, **input)
    assert told in message
    assert len(message) < 10_000
    # What is told goes to the model and into the log.
    message.encode()
    assert (nobody.started, nobody.searched) == (0, 0)
    assert closed.announced == []
