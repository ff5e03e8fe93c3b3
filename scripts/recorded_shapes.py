"""Writes tests/contract/recorded: the shape of recorded traffic, without its content.

    .venv/bin/python scripts/recorded_shapes.py RECORDINGS

RECORDINGS holds lists of exchanges (`errors_session.json`, ...), streams (`run_x.durable.sse`),
answers as text (`auth_cors.txt`), frames of a WebSocket, and the state after a restart. Of an
exchange the request is kept, with names for its ids, and of the answer the status and the shape:
keys and types, elements of lists by their `type`. Of a stream the types of its events are kept in
order, and of each type its shape. No text of a conversation is kept.

A recording that is not used is refused.
"""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Final

from perdure.core.text import jsonc
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
REVERT: Final = "run_revert"
"""A run during which exchanges were recorded."""
ANSWERS: Final = ("auth_cors", "misc_http")
"""Answers as text, each after a line with its name."""
STREAMS: Final = ("live1.sse", "live_misc.sse", "perm_question.live.sse", "live_heartbeat.txt")
"""Whole live streams."""
OTHERS: Final = ("live1.hdr", "examples.txt", "pty_ws.json", "restart_recovery.json")
_HEADERS: Final = re.compile(
    r"content-(type|encoding)|www-authenticate|access-control-.*|vary|allow|cache-control|x-.*"
)
_FRAME: Final = re.compile(r"^(?:(\d+\.\d+) )?(?:data: (\{.*)|: heartbeat)$", re.MULTILINE)
# An id that a server made: its prefix, and at least ten characters of which some are digits.
_ID: Final = re.compile(
    r"\b(ses|msg|per|que|pty|psv|evt|cred)_(?=[0-9A-Za-z]*\d)[0-9A-Za-z]{20,}\b"
)
_ZERO_ID: Final = re.compile(r"0{20,}")
_MACHINE: Final = re.compile(r"%2Ftmp%2F\w+%2Fproj2")
_LONG: Final = 2_000
STOPPED: Final = "..."
"""Marks the place where the recording of a stream ended before its run did."""
HEARTBEAT: Final = ": heartbeat"
MERGED: Final = (".delta", "plugin.added")
"""Consecutive events of these types are merged into one."""


class Names:
    """Gives ids names in the order of their appearance."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def named(self, text: str) -> str:
        return _ID.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        if _ZERO_ID.search(match[0]):
            return match[0]
        return self._known.setdefault(match[0], f"<{match[1]}{len(self._known) + 1}>")


def main() -> int:
    recordings = Path(sys.argv[1])
    if left := left_out(recordings):
        print(
            f"these recordings are not used: {', '.join(left)}; add them to a table of this script",
            file=sys.stderr,
        )
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    write_exchanges(recordings)
    write_runs(recordings)
    for name in ANSWERS:
        write(f"{name}.json", answers(recordings / f"{name}.txt"))
    write("live.json", {name.partition(".")[0]: live(recordings / name) for name in STREAMS})
    write("pty_ws.json", sockets(loaded(recordings / "pty_ws.json")))
    return 0


def write_exchanges(recordings: Path) -> None:
    for name in (*EXCHANGES, REVERT):
        names, recorded = Names(), loaded(recordings / f"{name}.json")
        if name == REVERT:
            recorded = meanwhile(recorded["extra"])
        written = [line for each in recorded if (line := exchange(each, names)) is not None]
        text = "[\n" + ",\n".join(written) + "\n]\n"
        (OUT / f"{name}.json").write_text(text, encoding="utf-8")


def write_runs(recordings: Path) -> None:
    """Return runs, the state after a restart, and the shapes of the events of all recordings."""
    names = sorted(
        path.name.removeprefix("run_").removesuffix(".durable.sse")
        for path in recordings.glob("run_*.durable.sse")
    )
    runs = {name: run(recordings, name) for name in names}
    looks: JsonObject = loaded(recordings / "restart_recovery.json")
    cases = {case.replace("-only", ""): restarted(look) for case, look in looks.items()}
    write("runs.json", {name: in_order(streams) for name, streams in runs.items()})
    write("settled.json", {name: settled(recordings, name) for name in names})
    write("restart_recovery.json", cases)
    durable = [look["history"]["data"] for look in looks.values()]
    whole = [frames(recordings / name) for name in STREAMS]
    write(
        "events.json",
        events_of(
            [
                *runs.values(),
                *({"durable": events, "live": []} for events in durable),
                *({"durable": [], "live": events} for events in whole),
            ]
        ),
    )


def left_out(recordings: Path) -> list[str]:
    """Return recordings that are not used, and examples that are in no other recording."""
    known = {*(f"{name}.json" for name in EXCHANGES), *(f"{name}.txt" for name in ANSWERS)}
    known |= {*STREAMS, *OTHERS}
    names = sorted(path.name for path in recordings.iterdir())
    left = [name for name in names if name not in known and not name.startswith("run_")]
    examples = (recordings / "examples.txt").read_text(encoding="utf-8")
    for name, line in re.findall(r"^# (\S+)\n(.*?)(?: …\(cut\))?$", examples, re.MULTILINE):
        if line not in (recordings / name).read_text(encoding="utf-8"):
            left.append(f"an example of {name}")
    return left


def loaded(path: Path) -> JsonValue:
    return json.loads(path.read_text(encoding="utf-8"))


def write(name: str, rows: JsonObject) -> None:
    """Format an object with one line for each key."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    (OUT / name).write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def meanwhile(extra: list[JsonObject]) -> list[JsonObject]:
    """Return the exchanges of a run in the form of the other exchanges."""
    found: list[JsonObject] = []
    for number, each in enumerate(extra, 1):
        method, path, *sent = each["req"]
        body = sent[0] if sent else None
        below = " ".join(path.partition("?")[0].split("/")[4:])
        headers = {} if each["body"] is None else {"Content-Type": "application/json"}
        request = {"method": method, "path": path, "body": body, "raw": None, "headers": None}
        response = {"status": each["status"], "headers": headers, "body": each["body"]}
        name = f"{number} {below or 'session'}"
        found.append({"name": name, "request": request, "response": response})
    return found


def exchange(recorded: JsonObject, names: Names) -> str | None:
    """Format one exchange on one line, or return None if it is too long."""
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
    """Return keys and types. With `names`, an id is replaced by its name."""
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
    """Merge two shapes: a key that one of them lacks ends with a question mark."""
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
    """Return the durable and live events of a run, without those of other Sessions."""
    durable = frames(recordings / f"run_{name}.durable.sse")
    session = durable[0]["data"]["sessionID"]
    live = [
        event
        for event in frames(recordings / f"run_{name}.live.sse")
        if event["data"].get("sessionID") == session
    ]
    final = recordings / f"run_{name}_final.json"
    if final.exists():
        durable = loaded(final)["history"]["data"]
        live.append({"type": STOPPED})
    return {"durable": durable, "live": live}


def settled(recordings: Path, name: str) -> JsonObject:
    """Return the state of a Session at the end of its run, and during it if that was recorded."""
    path, final = recordings / f"run_{name}.json", recordings / f"run_{name}_final.json"
    kept = ("session", "messages", "context")
    if final.exists():
        path, kept = final, ("messages",)
    told = loaded(path)
    lines = [outline(message) for message in told["messages"]["data"]]
    found: JsonObject = {"outline": lines, **{part: shape(told[part]) for part in kept}}
    if jsonc.is_object(extra := told.get("extra")) and "mid" in extra:
        found["meanwhile"] = shape(extra["mid"])
    return found


def outline(message: JsonObject) -> str:
    """Return the type of a message, the types and states of its parts, and how it ended."""
    if message["type"] != "assistant":
        return message["type"]
    parts = (
        f"{part['type']} {part.get('state', {}).get('status', '')}".rstrip()
        for part in message["content"]
    )
    return ", ".join(("assistant", *parts, message.get("finish", "open")))


def frames(path: Path) -> list[JsonObject]:
    found = _FRAME.findall(path.read_text(encoding="utf-8"))
    return [json.loads(data) for _, data in found if data]


def answers(path: Path) -> JsonObject:
    """Return the answers by name; a name without answers is left out."""
    parts = re.split(r"^### (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    named = zip(parts[::2], parts[1::2], strict=True)
    return {name: found for name, said in named if (found := _answers(said))}


def _answers(said: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    for line in said.splitlines():
        if status := re.match(r"HTTP/1\.1 (\d{3}) ", line):
            found.append({"status": int(status[1]), "headers": {}})
        elif summary := re.match(r"(\d{3}) (\w+/\w+)", line):
            found.append({"status": int(summary[1]), "headers": {"content-type": summary[2]}})
        elif header := re.match(r"([\w-]+): (.*)", line):
            found[-1]["headers"] |= kept_header(header[1], header[2])
        for body in bodies(line):
            if not found or "shape" in found[-1]:
                found.append({})
            found[-1]["shape"] = shape(body)
    return found


def kept_header(name: str, value: str) -> dict[str, str]:
    lower = name.lower()
    return {lower: value} if _HEADERS.fullmatch(lower) else {}


def bodies(line: str) -> list[JsonValue]:
    """Return the consecutive JSON objects at the beginning of a line."""
    found: list[JsonValue] = []
    at = 0
    while line[at : at + 1] == "{":
        body, at = json.JSONDecoder().raw_decode(line, at)
        found.append(body)
    return found


def live(path: Path) -> JsonObject:
    """Return a live stream: headers, frames, and the seconds between its heartbeats."""
    names, told = Names(), list[str]()
    found: list[tuple[str, str]] = _FRAME.findall(path.read_text(encoding="utf-8"))
    for _, data in found:
        line = line_of(json.loads(data), names) if data else HEARTBEAT
        if not (told[-1:] == [line] and line.partition(" ")[0].endswith(MERGED)):
            told.append(line)
    beats = [float(time) for time, data in found if time and not data]
    seconds = [round(after - before) for before, after in pairwise(beats)]
    return {"headers": headers_of(path.with_suffix(".hdr")), "frames": told, "seconds": seconds}


def line_of(event: JsonObject, names: Names) -> str:
    """Return the type of an event and the name of its Session."""
    session = names.named(event["data"].get("sessionID", ""))
    return f"{event['type'].removeprefix('session.')} {session}".rstrip()


def headers_of(path: Path) -> dict[str, str]:
    """Return the headers, or None if they were not recorded."""
    head = path.read_text(encoding="utf-8") if path.exists() else ""
    fields = re.findall(r"^([\w-]+): (.*)$", head, re.MULTILINE)
    return {key: item for field in fields for key, item in kept_header(*field).items()}


def sockets(recorded: JsonObject) -> JsonObject:
    """Return the status and the kinds of frames for each case."""
    kinds = {"(1": "text", "(2": "cursor"}
    return {
        case: {
            "status": int(first.split()[1]),
            "frames": [kinds[line[:2]] for line in rest if line[:2] in kinds],
        }
        for case, (first, *rest) in recorded.items()
    }


def restarted(look: JsonObject) -> JsonObject:
    """Return the state of a Session after a restart."""
    return {
        "history": types_of(look["history"]["data"]),
        "messages": shape(look["messages"]),
        "active": shape(look["active"]),
    }


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
    """Return the shape of each event type for each stream."""
    shapes: JsonObject = {}
    for stream in ("durable", "live"):
        for event in [event for streams in runs for event in streams[stream]]:
            key = f"{stream} {event['type'].removeprefix('session.')}"
            found = shape(event)
            shapes[key] = merged(shapes[key], found) if key in shapes else found
    return {key: shapes[key] for key in sorted(shapes) if not key.endswith(STOPPED)}


if __name__ == "__main__":
    sys.exit(main())
