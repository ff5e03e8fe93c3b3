"""`perdure search`: finds Sessions by words of their titles, prompts and answers."""

import asyncio
from collections.abc import Iterator
from typing import Final, cast

from perdure.cli import options, remote, terminal
from perdure.cli.render.tables import local_time, print_table
from perdure.cli.session_source import SessionSource, open_source
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

_AROUND_CHARS: Final = 40


class _Found(Value):
    session: JsonObject
    excerpt: str


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "search",
        "Find Sessions whose title, prompts or answers contain all of the words, in any case.",
        examples='perdure search login\nperdure search "failing test" --limit 500',
    )
    options.add_attach(parser)
    parser.add_argument("words", nargs="+", metavar="WORD", help="words to find")
    parser.add_argument(
        "--limit",
        type=int,
        default=200,
        metavar="N",
        help="look through the N newest Sessions (default: 200)",
    )
    options.add_format(parser, json="one Session with an excerpt on each line")
    given = parser.parse_args(argv)
    if given.limit < 1:
        parser.error("--limit must be at least 1")
    environment = options.read_environment(given.data_dir)
    with remote.errors_as_problems():
        found = asyncio.run(_search(given.attach, environment, given.words, given.limit))
    if given.format == "json":
        for each in found:
            line = {"session": each.session, "excerpt": each.excerpt}
            terminal.print_output(terminal.as_json(line) + "\n")
        return 0
    rows = [
        (each.session["id"], local_time(each.session["time"]["updated"]), each.excerpt)
        for each in found
    ]
    print_table(("SESSION", "CHANGED", "FOUND"), rows)
    if not found:
        terminal.print_note(f"none of the {given.limit} newest Sessions contains this\n")
    return 0


async def _search(
    url: str | None, environment: Environment, words: list[str], limit: int
) -> list[_Found]:
    found: list[_Found] = []
    wanted = [word.lower() for word in words]
    async with open_source(url, environment) as source:
        listed = await source.sessions(limit)
        for number, session in enumerate(listed, start=1):
            terminal.show_status(f"searching {number} of {len(listed)} Sessions")
            excerpt = await _find_in(source, session, wanted)
            if excerpt is not None:
                found.append(_Found(session, excerpt))
    terminal.clear_status()
    return found


async def _find_in(source: SessionSource, session: JsonObject, wanted: list[str]) -> str | None:
    """The text around the first word, or None unless all of them occur."""
    missing, excerpt = set(wanted), None
    texts = [str(session["title"])]
    async for message in source.messages(session["id"]):
        texts.extend(_texts_of(message))
    for text in texts:
        folded = text.lower()
        here = {word for word in wanted if word in folded}
        missing -= here
        if excerpt is None and wanted[0] in here:
            at = folded.index(wanted[0])
            excerpt = text[max(0, at - _AROUND_CHARS) : at + len(wanted[0]) + _AROUND_CHARS]
    return excerpt if not missing else None


def _texts_of(message: JsonObject) -> Iterator[str]:
    if isinstance(text := message.get("text"), str):
        yield text
    content = message.get("content")
    for part in cast("list[object]", content) if isinstance(content, list) else []:
        if isinstance(part, dict):
            text = cast("JsonObject", part).get("text")
            if isinstance(text, str):
                yield text
