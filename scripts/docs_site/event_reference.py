"""The reference page of events: durable ones in their log, live ones on their stream."""

from collections.abc import Iterator

import msgspec

from perdure.schema import live_event, manifest
from scripts.docs_site import records
from scripts.docs_site.records import code, table_row

_INTRODUCTION = """# Events

A **durable event** is a fact in the log of a Session. It has a sequence number, is stored before
anyone sees it, and every later reader gets the same bytes. Read them with `GET
/api/session/{sessionID}/history`, or follow them with `GET /api/session/{sessionID}/event`. A
**live event** reaches only the clients that are connected to `GET /api/event`; it is never stored
and advances no cursor. In Python, the classes are names of `perdure.events`.
"""


def write() -> str:
    return "\n".join([_INTRODUCTION, *_durable(), *_live()])


def _durable() -> Iterator[str]:
    yield "## Durable events\n"
    yield "All have `sessionID`; all but the first have `timestamp`, milliseconds since 1970.\n"
    for definition in manifest.DEFINITIONS:
        yield f"### `{definition.type}`\n"
        yield f"Version {definition.version}; `perdure.events.{definition.shape.__name__}`.\n"
        yield from _describe(definition.shape, hidden=frozenset({"sessionID", "timestamp"}))


def _live() -> Iterator[str]:
    yield "## Live events\n"
    for shape, name in live_event.LIVE_TYPES.items():
        yield f"### `{name}`\n"
        yield f"`perdure.events.{shape.__name__}`.\n"
        yield from _describe(shape, hidden=frozenset())


def _describe(shape: type[msgspec.Struct], *, hidden: frozenset[str]) -> Iterator[str]:
    if text := records.docstring(shape):
        yield f"{text}\n"
    fields = [field for field in records.list_fields(shape) if field.name not in hidden]
    if not fields:
        return
    yield table_row("field", "type", "")
    yield "|---|---|---|"
    for field in fields:
        when = "" if field.required else "may be absent. "
        yield table_row(code(field.name), code(field.type), (when + field.doc).strip())
    yield ""
