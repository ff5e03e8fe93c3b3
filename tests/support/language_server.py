"""A language server to test with: a real program that behaves, or misbehaves as it is told.

    python language_server.py MODE JOURNAL

Every line with `wrong` in it is an error, every one with `odd` a warning. What it hears is written
to the journal, a line of JSON each. It uses nothing but the standard library, and little of that:
many are started, and loading is most of what one costs.
"""

import json
import os
import signal
import sys
from typing import Any

MODES = (
    "sound",
    "settling",
    "never",
    "garbage",
    "huge",
    "dead",
    "refuses",
    "dies",
    "curious",
    "floods",
    "clings",
    "slow",
    "deaf",
)
QUESTIONS: tuple[tuple[str, Any], ...] = (
    ("workspace/configuration", {"items": [{"section": "a"}, {"section": "b"}]}),
    ("client/registerCapability", {"registrations": []}),
    ("workspace/applyEdit", {"edit": {}}),
    ("window/unheardOf", None),
    ("workspace/workspaceFolders", None),
)


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


class Server:
    def __init__(self, mode: str, journal: str) -> None:
        self.mode = mode
        self.journal = journal
        self.answers = 0
        self.waiting: tuple[str, int, str] | None = None

    def note(self, **fields: object) -> None:
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")

    def begin(self) -> None:
        child = None
        if self.mode == "clings":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = os.posix_spawnp("sleep", ["sleep", "600"], os.environ)
        names = sorted(name for name in os.environ if not name.startswith(("LC_", "__")))
        self.note(began=os.getpid(), child=child, variables=names)
        if self.mode == "dead":
            sys.exit(3)
        if self.mode == "garbage":
            sys.stdout.buffer.write(b"Starting up...\n" * 10_000)
            sys.stdout.buffer.flush()

    def hear(self, said: dict[str, Any]) -> None:
        method: str | None = said.get("method")
        params: Any = said.get("params")
        self.note(method=method, params=params, result=said.get("result"), error=said.get("error"))
        if method == "initialize":
            self.initialize(said["id"])
        elif method == "initialized":
            self.initialized()
        elif method == "workspace/symbol":
            self.answer_symbols(said["id"], params["query"])
        elif method == "shutdown" and self.mode != "clings":
            send({"id": said["id"], "result": None})
        elif method == "exit" and self.mode != "clings":
            sys.exit(0)
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            self.look(document["uri"], document["version"], document["text"])
        elif method == "textDocument/didChange":
            document = params["textDocument"]
            text = params["contentChanges"][0]["text"]
            self.look(document["uri"], document["version"], text)
        elif method is None:
            self.answers += 1
            if self.waiting is not None and self.answers == len(QUESTIONS):
                self.publish(*self.waiting)

    def initialize(self, id: int) -> None:
        if self.mode == "refuses":
            send({"id": id, "error": {"code": -32002, "message": "no"}})
        elif self.mode != "slow":
            send({"id": id, "result": {"capabilities": {"textDocumentSync": 1}}})

    def answer_symbols(self, id: int, query: str) -> None:
        """One in the folder, one outside, and some that are none; `never` does not answer."""
        if self.mode == "never":
            return
        place = {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}}
        here = "file://" + os.getcwd()
        symbols = [
            {"name": query, "kind": 12, "location": {"uri": uri, "range": place}}
            for uri in (f"{here}/a.txt", f"{here}/secret.txt", "file:///etc/hosts", "untitled:a")
        ]
        spoilt = [5, {}, {"name": query, "kind": -1, "location": symbols[0]["location"]}]
        send({"id": id, "result": [*spoilt, *symbols]})

    def initialized(self) -> None:
        if self.mode == "deaf":
            signal.pause()
        if self.mode == "curious":
            for number, (method, params) in enumerate(QUESTIONS):
                send({"id": f"q{number}", "method": method, "params": params})

    def look(self, uri: str, version: int, text: str) -> None:
        if self.mode == "dies":
            sys.exit(4)
        if self.mode == "never":
            return
        if self.mode == "curious" and self.answers < len(QUESTIONS):
            self.waiting = (uri, version, text)
            return
        if self.mode == "huge":
            send({"method": "window/logMessage", "params": {"message": "x" * 6_000_000}})
        while self.mode == "floods":
            send({"method": "window/logMessage", "params": {"message": "x" * 60_000}})
        if self.mode == "settling":
            send({"method": "textDocument/publishDiagnostics", "params": found(uri, None, "")})
            self.publish(uri, None, text)
            return
        self.publish(uri, version, text)

    def publish(self, uri: str, version: int | None, text: str) -> None:
        # Stale and meaningless messages come first: they must not be taken for an answer.
        for params in (found(uri, 0, "wrong"), {"uri": 5}, {}):
            if version is not None:
                send({"method": "textDocument/publishDiagnostics", "params": params})
        send({"method": "textDocument/publishDiagnostics", "params": found(uri, version, text)})


def found(uri: str, version: int | None, text: str) -> dict[str, Any]:
    diagnostics = [
        {
            "range": {
                "start": {"line": number, "character": line.index(word)},
                "end": {"line": number, "character": len(line)},
            },
            "severity": severity,
            "source": "test",
            "code": word,
            "message": f"this is\n{word}",
        }
        for number, line in enumerate(text.splitlines())
        for word, severity in (("wrong", 1), ("odd", 2))
        if word in line
    ]
    said = {"uri": uri, "diagnostics": [*diagnostics, {"severity": 1}, 5]}
    return said if version is None else {**said, "version": version}


def main(mode: str, journal: str) -> None:
    assert mode in MODES, mode
    server = Server(mode, journal)
    server.begin()
    while (said := receive()) is not None:
        server.hear(said)
    server.note(ended=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
