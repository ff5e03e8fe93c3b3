"""Our description against that of the published server, for every operation that both have.

`published_contract.json` is the published description as `contract_shape` reduces it. Each line in
which the two differ must be explained below, and each explanation must explain something.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from perdure.schema import codec
from tests.requirements import requirement
from tests.support.inputs.contract_description import document
from tests.unit.protocol import contract_shape

PUBLISHED: Final[dict[str, list[str]]] = codec.decode(
    dict[str, list[str]], (Path(__file__).parent / "published_contract.json").read_bytes()
)

REASONS: Final[Mapping[str, str]] = {
    r"\+ \S+ status 403": "a foreign Host or Origin is refused, and that is said",
    r"\+ \S+ status 429": "too many at a time are refused, and that is said",
    r"\+ \S+ status 41[35]": "a body too large or not JSON is refused, and that is said",
    r"\+ \S+ status 507": "a full disk is told apart from a defect",
    r"\+ \S+ status 503": "another process may keep the database locked for too long",
    r"\+ v2\.session\.\S+ status 409": (
        "a damaged row, a running Session or a taken id is told apart from a defect"
    ),
    r"\+ v2\.(integration|credential)\.\S+ status 404": (
        "what is not there is not found; the published server answers 500 or 204"
    ),
    r"\+ v2\.fs\.\S+ status 404": "what is not there is not found; published: 500",
    r"\+ v2\.(integration|credential)\.\S+ status 503": "credentials that cannot be read or kept",
    r"\+ v2\.session\.permission\.create status 503": "as many requests wait as may",
    r"- \S+ body \S+\?: (string|boolean|array|object)": "see the next one",
    r"\+ \S+ body \S+\?: (array\||boolean\|)?null(\|string|\|object)?": (
        "a null in a request counts as absent"
    ),
    r"\+ v2\.session\.permission\.reply body \.seconds\?: null\|number": (
        "an approval may end after a time"
    ),
    r"\+ v2\.permission\.saved\.list answer"
    r" \.data\[\]\.(scope|directory|sessionID|agent|expires)\?: (string|number)": (
        "where an approval counts, and until when"
    ),
    r"\+ v2\.(session\.)?permission\.\S+ answer \.data(\[\])?\.changes.*": (
        "a person sees what an edit would change before allowing it"
    ),
    r"\+ v2\.(session\.)?permission\.\S+ answer \.data(\[\])?\.notes.*": (
        "a person sees what is unusual about a request, in every client"
    ),
    r"- v2\.session\.permission\.create body \.source\..+": "see the next one",
    r"\+ v2\.session\.permission\.create body \.source<tool>.+": "a union as soon as null is",
    r"- \S+ answer \S+\.state\.attachments.+": "nothing ever fills it: files are content",
    r"[-+] \S+ answer \S+\.state\.outputPaths.+": "always there, empty where there are none",
    r"[-+] v2\.session\.history answer \S+\.durable\??: object": "always there: it is the log",
    r"- v2\.session\.history answer \S+\.metadata\?: object": "nothing ever fills it",
    r"\+ v2\.session\.history answer \.data\[\]<session\.next\.todo\.updated>.*": (
        "the list of what is to be done is durable here"
    ),
    r"\+ v2\.session\.history answer \.data\[\]<session\.next\."
    r"(renamed|model\.substituted|archived|unarchived|budget\.changed|rules\.changed|spent|deleted|forked|prompt\."
    r"revised|prompt\.cancelled|inbox\.reordered|message\.excluded|message\.restored)>.*": (
        "what the operations beside the published ones record"
    ),
    r"\+ v2\.session\.history answer \.data\[\]<session\.next\.tool\.pruned>.*": (
        "what the model is no longer sent is durable; the published `time.pruned` is its mark"
    ),
    r"\+ v2\.session\.history answer \.data\[\]<session\.next\.compaction\.reported>.*": (
        "a compaction that made no checkpoint says what it did, or why it did nothing"
    ),
    r"\+ \S+ answer \S+\.time\.excluded\?: number": (
        "a message or result that the user excluded from what the model is sent is marked"
    ),
    r"\+ \S+ answer \S+<(session\.next\.)?compaction(\.ended)?>(\.data)?\.(directives|todos).*": (
        "a checkpoint also keeps what the person ordered and what is still to be done"
    ),
    r"\+ \S+ answer \S+<(user|session\.next\.prompted)>(\.data)?\.attached.*": (
        "what the model is told of the attachments is kept beside the prompt"
    ),
    r"\+ v2\.session\.(compact body|history answer) .*(: object|\.instruction\?: string)": (
        "a compaction may be told what to keep"
    ),
    r"\+ v2\.session\.history answer \S+<session\.next\.retried>\.data\.next\?: number": (
        "when it is tried again, so that a person sees how long it takes"
    ),
    r"\+ \S+ answer \.data(\[\])?(\.session)?\.substitute\b.*": (
        "another model of the agent's chain may stand in for the chosen one"
    ),
    r"\+ \S+ answer \.data(\[\])?(\.session)?\.budget\b.*": (
        "a Session may have a budget of its own"
    ),
    r"\+ \S+ answer \.data(\[\])?(\.session)?\.permissions\b.*": (
        "a Session may have permission rules of its own"
    ),
    r"\+ v2\.session\.create body \.permissions\b.*": (
        "a Session may have permission rules of its own"
    ),
    r"\+ v2\.session\.create body \.mcp\b.*": "a Session may have MCP servers of its own",
    r"\+ v2\.session\.\S+ answer \S+\.conflicts\b.*": (
        "a revert tells which files it leaves to whoever changed them"
    ),
    r"\+ v2\.session\.revert\.(stage|clear) status 503": "it may be interrupted while it waits",
    r"\+ \S+ answer \S+<assistant>\.content\[\]<\w+>\.cursor\?: number": (
        "a part that streams tells which live deltas follow its text"
    ),
    r"\+ \S+ answer \S+(<assistant>|<session\.next\.step\.started>\.data)\.route\b.*": (
        "a step tells by which way its request went"
    ),
    r"\+ v2\.session\.events parameter query replayed\?": "the end of a replay can be an event",
    r"\+ v2\.session\.list parameter query archived\?": "archived Sessions can be left out",
    r"[-+] v2\.(model|provider)\.\S+ answer \.data(\[\])?\.api.*": (
        "one shape with optional fields: what we tell fits both of the published ones"
    ),
    r"- v2\.model\.list answer \.data\[\]\.request\.variant\?: string": "nothing ever fills it",
    r"[-+] v2\.integration\.\S+ answer \.data\.time\.(created|expires): .+": (
        "times are numbers; the published description also allows NaN and Infinity as text"
    ),
    r"\+ v2\.permission\.saved\.list parameter query location\?": (
        "saved rules belong to a project, and a Location names one"
    ),
    r"\+ v2\.fs\.read parameter query path\?": (
        "the published path ends in an asterisk that no client can fill"
    ),
    r"\+ v2\.session\.\S+ body \.(prompt\.)?files\[\]\.mime\?: string": (
        "older clients name the type of a file; it is accepted, and the content decides"
    ),
    r"\+ v2\.session\.create body \.(title|metadata)\?: .+": (
        "a client may name and mark its Session"
    ),
    r"\+ \S+ answer \.data(\[\])?\.metadata\?: object": "and is told what it said",
    r"\+ \S+ answer \.data(\[\])?\.permissions\S*: .+": (
        "tools that a V1 client took away from the Session"
    ),
    r"[-+] v2\.pty\.connect (answer|media|status|parameter query location).*": (
        "what answers is a WebSocket, and the Location is named as everywhere"
    ),
    r"\+ v2\.pty\.create status 503": "as many terminals run as may",
}


@requirement("S146")
def test_every_difference_from_the_published_contract_has_a_reason() -> None:
    unexplained = [line for line in differences() if not explanations(line)]
    assert unexplained == []


def test_every_reason_is_still_needed() -> None:
    used = {pattern for line in differences() for pattern in explanations(line)}
    assert set(REASONS) - used == set()


def test_routes_and_what_a_client_must_send_do_not_differ() -> None:
    """Whatever else is explained: a client of the published server is understood here."""
    ours_by_operation = shape_of_ours()
    for operation in PUBLISHED.keys() & ours_by_operation.keys():
        ours, published = set(ours_by_operation[operation]), set(PUBLISHED[operation])
        assert {line for line in published if line.startswith("route ")} <= ours
        demanded = {
            line
            for line in ours - published
            if re.fullmatch(r"(parameter \S+ [^?]+|body \.[^.?<\[]+: .+)", line)
        }
        assert demanded == set()


def test_a_difference_is_seen() -> None:
    """Planted: a field less, a parameter more."""
    changed = codec.decode_any(codec.encode(document()))
    del changed["paths"]["/api/health"]["get"]["responses"]["200"]["content"]
    changed["paths"]["/api/health"]["get"]["parameters"].append(
        {"name": "x", "in": "query", "required": True}
    )
    lines = contract_shape.shape(changed)["v2.health.get"]
    assert "parameter query x" in lines
    assert "answer .healthy: boolean" in set(PUBLISHED["v2.health.get"]) - set(lines)


@cache
def shape_of_ours() -> dict[str, list[str]]:
    return contract_shape.shape(document())


def differences() -> Iterator[str]:
    ours_by_operation = shape_of_ours()
    for operation in PUBLISHED.keys() & ours_by_operation.keys():
        ours, published = set(ours_by_operation[operation]), set(PUBLISHED[operation])
        yield from (f"- {operation} {line}" for line in sorted(published - ours))
        yield from (f"+ {operation} {line}" for line in sorted(ours - published))


def explanations(line: str) -> list[str]:
    return [pattern for pattern in REASONS if re.fullmatch(pattern, line)]
