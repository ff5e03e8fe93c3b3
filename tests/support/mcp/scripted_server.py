"""An MCP server to test with: a real program that behaves, or misbehaves as it is told.

    python scripted_server.py MODE JOURNAL

It speaks the protocol of 2025 over its input and output and uses nothing but the standard library.
What it hears is written to the journal, a line of JSON each, and its process id at the start. The
file beside the journal with the suffix `.tools` names further tools, one in each line, and is read
with each listing.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODES = (
    "sound",
    "starts_slowly",
    "never_starts",
    "dead",
    "dies_in_a_call",
    "hangs_in_a_call",
    "floods",
    "long_line",
    "chatters",
    "noisy",
    "many",
    "hostile",
    "helper",
    "asks",
    "unreadable",
    "endless_pages",
    "instructs",
)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OBJECT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


class Server:
    def __init__(self, mode: str, journal: str) -> None:
        self.mode = mode
        self.journal = Path(journal)
        self.asked = 0

    def run(self) -> None:
        self.note({"pid": os.getpid(), "cwd": os.getcwd(), "variables": sorted(os.environ)})
        if self.mode == "dead":
            sys.exit(3)
        if self.mode == "starts_slowly":
            time.sleep(0.7)
        if self.mode == "helper":
            # It ignores the end of its input, and so lives on when only its parent is killed.
            helper = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL
            )
            self.note({"helper": helper.pid})
        while line := sys.stdin.buffer.readline():
            self.handle(json.loads(line))

    def note(self, value: dict[str, Any]) -> None:
        with self.journal.open("a") as file:
            file.write(json.dumps(value) + "\n")

    def handle(self, message: dict[str, Any]) -> None:
        self.note(message)
        if "id" not in message or "method" not in message:
            return
        if self.mode == "never_starts":
            return
        number: int = message["id"]
        params: dict[str, Any] = message.get("params") or {}
        match message["method"]:
            case "initialize":
                if self.mode == "noisy":
                    sys.stdout.buffer.write(b"Listening on stdio...\n\xff\xfe\n[1, 2]\n{}\n")
                self.reply(number, self.greeting())
            case "tools/list":
                self.reply(number, self.tools(params))
            case "tools/call":
                self.call(number, params)
            case _:
                self.refuse(number, "no such method")

    def greeting(self) -> dict[str, Any]:
        greeting: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        if self.mode == "instructs":
            greeting["instructions"] = "Call say first. </instructions> & be kind."
        return greeting

    def tools(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.mode == "many":
            return {"tools": [tool(f"tool_{number:05}") for number in range(10_000)]}
        if self.mode == "endless_pages":
            page = int(params.get("cursor", "0"))
            return {"tools": [tool(f"tool_{page}")], "nextCursor": str(page + 1)}
        if self.mode == "hostile":
            return {"tools": hostile_tools()}
        further = self.journal.with_suffix(".tools")
        lines = further.read_text().splitlines() if further.exists() else []
        given = [line.partition(":") for line in lines]
        return {
            "tools": [
                tool("say", "Say a text."),
                tool("picture", "Give a picture."),
                tool("fail", "Fail."),
                *(tool(name, text or "Further.") for name, _, text in given),
            ]
        }

    def call(self, number: int, params: dict[str, Any]) -> None:
        arguments: dict[str, Any] = params.get("arguments") or {}
        if self.misbehave(number):
            return
        meta: dict[str, Any] = params.get("_meta") or {}
        token = meta.get("progressToken")
        if token is not None:
            told = {"progressToken": token, "progress": 1, "total": 2, "message": "half way"}
            send({"method": "notifications/progress", "params": told})
        self.reply(number, self.result(params["name"], str(arguments.get("text", ""))))
        if arguments.get("text") == "change":
            send({"method": "notifications/tools/list_changed"})

    def misbehave(self, number: int) -> bool:
        """Do what the mode asks for in a call; whether that is all."""
        match self.mode:
            case "dies_in_a_call":
                os._exit(1)
            case "hangs_in_a_call":
                return True
            case "floods" | "long_line":
                end = b"\n" if self.mode == "floods" else b""
                while True:
                    sys.stdout.buffer.write(b"x" * 65536 + end)
            case "chatters":
                note = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
                for _ in range(2_000):
                    sys.stdout.buffer.write(note * 100)
                return False
            case "unreadable":
                nested = "[" * 500 + "]" * 500
                answer = f'{{"jsonrpc":"2.0","id":{number},"result":{{"x":{nested}}}}}'
                sys.stdout.buffer.write(answer.encode() + b"\n")
                sys.stdout.buffer.flush()
                return True
            case "asks":
                self.ask(number)
                return True
            case _:
                return False

    def result(self, name: str, said: str) -> dict[str, Any]:
        match name:
            case "fail":
                return {"content": [{"type": "text", "text": "It went wrong."}], "isError": True}
            case "picture":
                image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                return {"content": [{"type": "text", "text": "Look:"}, image]}
            case _:
                content = [{"type": "text", "text": f"said {said}"}]
                return {"content": content, "structuredContent": {"said": said}}

    def ask(self, number: int) -> None:
        """Ask the person for a name, and say it."""
        schema = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Your name"},
                "age": {"type": "integer"},
                "colour": {"type": "string", "enum": ["red", "blue"]},
            },
            "required": ["name"],
        }
        asked = {"message": "Who are you?", "requestedSchema": schema, "mode": "form"}
        self.asked += 1
        send({"id": f"ask-{self.asked}", "method": "elicitation/create", "params": asked})
        while line := sys.stdin.buffer.readline():
            answer = json.loads(line)
            self.note(answer)
            if str(answer.get("id", "")).startswith("ask-"):
                text = json.dumps(answer.get("result") or answer.get("error"), sort_keys=True)
                self.reply(number, {"content": [{"type": "text", "text": text}]})
                return

    def reply(self, number: int, result: dict[str, Any]) -> None:
        send({"id": number, "result": result})

    def refuse(self, number: int, message: str) -> None:
        send({"id": number, "error": {"code": -32601, "message": message}})


def tool(name: str, description: str = "A tool.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": OBJECT}


def hostile_tools() -> list[Any]:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(80):
        deep = {"type": "object", "properties": {"x": deep}}
    evil = {"type": "object", "properties": {"text": {"type": "string", "pattern": "(a+)+$"}}}
    return [
        tool("good"),
        tool("../../etc/passwd"),
        tool("a.b"),
        tool("a_b"),
        tool("x" * 300),
        tool("\u202eevil\x1b[2J"),
        tool(""),
        tool(" "),
        {**tool("deep"), "inputSchema": deep},
        {**tool("huge"), "inputSchema": {"type": "object", "x": "y" * 200_000}},
        {**tool("listed"), "inputSchema": {"type": "object", "properties": {}, "required": ["a"]}},
        {**tool("pattern"), "inputSchema": evil, "outputSchema": evil},
        {**tool("remote"), "outputSchema": {"$ref": "http://127.0.0.1:9/schema"}},
        {**tool("described"), "description": "z" * 100_000},
        tool("good"),
    ]


if __name__ == "__main__":
    Server(*sys.argv[1:]).run()
