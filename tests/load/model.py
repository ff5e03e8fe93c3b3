"""A model that does what the text of the last prompt says, and keeps no state.

    say N      a long text                     append N   one command that appends a line
    slow N     the same, and takes its time    ask N      the same, after a person allowed it
    job N      the same, in the background     task N     has a subagent append a line

A line names the prompt, so that an effect that happens twice is seen.
"""

from pathlib import Path
from typing import Final

from perdure.schema.codec import JsonValue
from tests.support.scripted_provider import Call, Reply, Request, calls, text

KINDS: Final = ("say", "append", "append", "slow", "ask", "ask", "job", "task")
ASKED: Final = "echo ask"
"""How a command begins that a person has to allow."""


class PromptedModel:
    def __init__(self, effects: Path) -> None:
        self._effects = effects

    def answer(self, request: Request) -> Reply:
        if "tools" not in request.body or request.messages[-1]["role"] == "tool":
            return text("done ", "with it.")
        prompts = [said for said in map(_plain, _user_contents(request)) if _is_order(said)]
        if not prompts or _plain(request.messages[-1]["content"]) != prompts[-1]:
            return text("noted")
        kind, _, marker = prompts[-1].partition(" ")
        return self._obey(kind, marker)

    def _obey(self, kind: str, marker: str) -> Reply:
        line = f"{kind}-{marker}"
        append = f"echo {line} >> {self._effects}"
        match kind:
            case "append" | "ask":
                return calls(Call("bash", {"command": append, "description": "append"}))
            case "slow":
                slow = f"sleep 0.4 && {append}"
                return calls(Call("bash", {"command": slow, "description": "append"}))
            case "job":
                late = {"command": f"sleep 0.2 && {append}", "description": "append"}
                return calls(Call("bash", {**late, "background": True}))
            case "task":
                given = {"description": "append", "prompt": f"append child-{marker}"}
                return calls(Call("task", {**given, "subagent_type": "general"}))
            case _:
                # Long enough that a compaction after a few of them has something to condense.
                return text(*("so be it. " * 100 for _ in range(12)))


def _user_contents(request: Request) -> list[JsonValue]:
    return [message["content"] for message in request.messages if message["role"] == "user"]


def _plain(content: JsonValue) -> str:
    """The text of a message, which may be in parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or ())


def _is_order(said: str) -> bool:
    kind, _, marker = said.partition(" ")
    return kind in KINDS and bool(marker) and " " not in marker
