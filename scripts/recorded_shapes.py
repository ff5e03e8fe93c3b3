"""Writes tests/contract/recorded: what recorded traffic looked like, without what it said.

    .venv/bin/python scripts/recorded_shapes.py RECORDINGS

RECORDINGS holds lists of exchanges (`errors_session.json`, ...) and streams (`run_x.durable.sse`).
Of an exchange its request is kept, with names for its ids, and of the answer the status and the
shape: keys and types, elements of lists by their `type`. Of a run the types of its durable and its
live events are kept in their order, deltas that follow each other as one, and of each type of event
its shape in all runs. None of what was said is.
"""

import json
import re
import sys
from pathlib import Path
from typing import Final

from perdure.core import jsonc
from perdure.schema.codec import JsonObject, JsonValue

OUT: Final = Path(__file__).resolve().parent.parent / "tests" / "contract" / "recorded"
EXCHANGES: Final = (
    "errors_session",
    "errors_prompt_pages",
    "checks_order",
    "misc_semantics",
    "list_pty",
    "location_catalog",
    "permission_question",
)
# What a server made: its kind, and at least ten characters of which some are digits.
_ID: Final = re.compile(
    r"\b(ses|msg|per|que|pty|psv|evt|cred)_(?=[0-9A-Za-z]*\d)[0-9A-Za-z]{20,}\b"
)
_NOBODY: Final = re.compile(r"0{20,}")
_MACHINE: Final = re.compile(r"%2Ftmp%2F\w+%2Fproj2")
_LONG: Final = 2_000
STOPPED: Final = "..."
"""Stands where a stream was no longer recorded although its run went on."""


class Names:
    """Names for ids, in the order in which they appear."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def named(self, text: str) -> str:
        return _ID.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        if _NOBODY.search(match[0]):
            return match[0]
        return self._known.setdefault(match[0], f"<{match[1]}{len(self._known) + 1}>")


def main() -> int:
    recordings = Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    for name in EXCHANGES:
        names = Names()
        recorded = json.loads((recordings / f"{name}.json").read_text(encoding="utf-8"))
        written = [line for each in recorded if (line := exchange(each, names)) is not None]
        text = "[\n" + ",\n".join(written) + "\n]\n"
        (OUT / f"{name}.json").write_text(text, encoding="utf-8")
    names = sorted(
        path.name.removeprefix("run_").removesuffix(".durable.sse")
        for path in recordings.glob("run_*.durable.sse")
    )
    runs = {name: run(recordings, name) for name in names}
    write("runs.json", {name: in_order(streams) for name, streams in runs.items()})
    write("events.json", events_of(list(runs.values())))
    return 0


def write(name: str, rows: JsonObject) -> None:
    """An object, a line for each of its keys."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    (OUT / name).write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def exchange(recorded: JsonObject, names: Names) -> str | None:
    """One exchange on one line; None for what is too long to keep."""
    request, response = recorded["request"], recorded["response"]
    kept = {
        "name": recorded["name"],
        "method": request["method"],
        "path": request["path"],
        **{key: request[key] for key in ("body", "raw", "headers") if request[key] is not None},
        "status": response["status"],
        "type": response["headers"].get("Content-Type", "").partition(";")[0],
    }
    if len(json.dumps(kept)) > _LONG:
        return None
    line = _MACHINE.sub("%2Fproject2", names.named(json.dumps(kept)))
    if kept["type"] != "application/json":
        return line
    return f'{line[:-1]}, "shape": {json.dumps(shape(response["body"], names))}}}'


def shape(value: JsonValue, names: Names | None = None) -> JsonValue:
    """Keys and types; with names, a text that is an id by its name."""
    if jsonc.is_object(value):
        return {key: shape(item, names) for key, item in value.items()}
    if jsonc.is_list(value):
        kinds: JsonObject = {}
        for item in value:
            kind = item.get("type", "") if jsonc.is_object(item) else ""
            found = shape(item, names)
            kinds[kind] = merged(kinds[kind], found) if kind in kinds else found
        return [kinds]
    match value:
        case str():
            name = "" if names is None else names.named(value)
            return name if re.fullmatch(r"<[a-z]+\d+>", name) else "string"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"


def merged(one: JsonValue, other: JsonValue) -> JsonValue:
    """The shape of both: a key that one of them lacks ends with a question mark."""
    if jsonc.is_object(one) and jsonc.is_object(other):
        return _merged_objects(one, other)
    if jsonc.is_list(one) and jsonc.is_list(other):
        return [_merged_kinds(one[0], other[0])]
    if one == other:
        return one
    texts = all(isinstance(each, str) and each[0] in "<s" for each in (one, other))
    return "string" if texts else "any"


def _merged_objects(one: JsonObject, other: JsonObject) -> JsonObject:
    sides = [{key.rstrip("?"): item for key, item in each.items()} for each in (one, other)]
    both: JsonObject = {}
    for key in dict.fromkeys((*sides[0], *sides[1])):
        found = [side[key] for side in sides if key in side]
        needed = key in one and key in other
        both[key if needed else f"{key}?"] = merged(found[0], found[-1])
    return both


def _merged_kinds(one: JsonObject, other: JsonObject) -> JsonObject:
    shared = {kind: merged(one[kind], other[kind]) for kind in one if kind in other}
    return {**one, **other, **shared}


def run(recordings: Path, name: str) -> dict[str, list[JsonObject]]:
    """The durable and the live events of a run, without those of Sessions beside it."""
    durable = frames(recordings / f"run_{name}.durable.sse")
    session = durable[0]["data"]["sessionID"]
    live = [
        event
        for event in frames(recordings / f"run_{name}.live.sse")
        if event["data"].get("sessionID") == session
    ]
    final = recordings / f"run_{name}_final.json"
    if final.exists():
        durable = json.loads(final.read_text(encoding="utf-8"))["history"]["data"]
        live.append({"type": STOPPED})
    return {"durable": durable, "live": live}


def frames(path: Path) -> list[JsonObject]:
    found = re.findall(r"^data: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [json.loads(each) for each in found]


def in_order(streams: dict[str, list[JsonObject]]) -> JsonObject:
    return {
        stream: [
            kind
            for kind, follows in zip(types_of(events), [None, *types_of(events)], strict=False)
            if not (kind == follows and kind.endswith(".delta"))
        ]
        for stream, events in streams.items()
    }


def types_of(events: list[JsonObject]) -> list[str]:
    return [event["type"].removeprefix("session.") for event in events]


def events_of(runs: list[dict[str, list[JsonObject]]]) -> JsonObject:
    """The shape of each type of event in each stream."""
    shapes: JsonObject = {}
    for stream in ("durable", "live"):
        for event in [event for streams in runs for event in streams[stream]]:
            key = f"{stream} {event['type'].removeprefix('session.')}"
            found = shape(event)
            shapes[key] = merged(shapes[key], found) if key in shapes else found
    return {key: shapes[key] for key in sorted(shapes) if not key.endswith(STOPPED)}


if __name__ == "__main__":
    sys.exit(main())
