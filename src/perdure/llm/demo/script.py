"""The tasks of the demo model: each a short script for the real tools.

A task is recognised by words in the prompt. llm.demo.model plays a script in a conversation.
"""

import re
from collections.abc import Callable
from typing import Final

from perdure.llm.demo import summary
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

PROMPT_CHARS_MAX: Final = 2_000
"""Only the beginning of a prompt is searched, to keep the patterns cheap."""

INTRODUCTION: Final = "This is the demo model: a fixed script, not an AI."


class Call(Value):
    """One step: say a sentence, then call a tool."""

    says: str
    tool: str
    input: JsonObject


class Script(Value, kw_only=True):
    calls: tuple[Call, ...] = ()
    closing: str
    shows_result: bool = False
    """Whether the result of the last tool follows the closing text."""


class Task(Value):
    title: str
    example: str
    pattern: re.Pattern[str]
    script: Callable[[re.Match[str]], Script]


def script_for(prompt: str) -> Script:
    """The script of the first task that `prompt` mentions, or the list of tasks."""
    if summary.is_asked(prompt):
        return Script(closing=summary.summary_of(prompt))
    beginning = prompt[:PROMPT_CHARS_MAX]
    for task in TASKS:
        match = task.pattern.search(beginning)
        if match is not None:
            return task.script(match)
    return Script(closing=_CAPABILITIES)


def _ask_permission(_: re.Match[str]) -> Script:
    says = "The next call reads a file outside this directory, so you are asked for permission."
    return Script(
        calls=(Call(says, "read", {"path": "/etc/hosts"}),),
        closing="You allowed it. This is what the file holds:",
        shows_result=True,
    )


def _edit(_: re.Match[str]) -> Script:
    path = "perdure-demo.txt"
    before, after = "The second line is old.", "The second line is new."
    content = f"The first line stays.\n{before}\n"
    edit = {"path": path, "oldString": before, "newString": after}
    return Script(
        calls=(
            Call(f"Step 1 of 3: write {path}.", "write", {"path": path, "content": content}),
            Call("Step 2 of 3: replace its second line.", "edit", edit),
            Call("Step 3 of 3: read it back.", "read", {"path": path}),
        ),
        closing=f"Done: {path} was written, edited and read back.",
        shows_result=True,
    )


def _list_files(_: re.Match[str]) -> Script:
    return Script(
        calls=(Call("The glob tool lists the files here.", "glob", {"pattern": "**/*"}),),
        closing="The glob tool answered:",
        shows_result=True,
    )


def _find_text(match: re.Match[str]) -> Script:
    wanted = match["quoted"] or match["word"]
    return Script(
        calls=(
            Call(f"The grep tool looks for {wanted!r}.", "grep", {"pattern": re.escape(wanted)}),
        ),
        closing="The grep tool answered:",
        shows_result=True,
    )


def _run_tests(_: re.Match[str]) -> Script:
    command = (
        "if grep -qs '^test:' Makefile; then make test; "
        "elif [ -f package.json ]; then npm test; "
        "else python3 -m pytest -q; fi"
    )
    return _bash("The bash tool runs this project's tests.", command)


def _run_command(match: re.Match[str]) -> Script:
    return _bash("The bash tool runs your command.", match["quoted"] or match["rest"].strip())


def _bash(says: str, command: str) -> Script:
    return Script(
        calls=(Call(says, "bash", {"command": command}),),
        closing="The command has ended. Its output:",
        shows_result=True,
    )


def _create_file(match: re.Match[str]) -> Script:
    path = match["path"]
    content = (match["content"] or "Written by the demo model.").strip() + "\n"
    return Script(
        calls=(
            Call(f"The write tool creates {path}.", "write", {"path": path, "content": content}),
        ),
        closing=f"{path} was written.",
    )


def _explain(_: re.Match[str]) -> Script:
    return Script(closing=_EXPLANATION)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


TASKS: Final = (
    Task(
        "ask for a permission",
        "show me a permission request",
        _words(r"\bpermission\b|\boutside\b"),
        _ask_permission,
    ),
    Task(
        "edit in several steps",
        "do the edit demo",
        _words(r"\bedit demo\b|\bmulti-?step\b|\bseveral steps\b"),
        _edit,
    ),
    Task(
        "explain this runtime",
        "explain this runtime",
        _words(r"\b(?:explain|what is|how does)\b.{0,40}\b(?:runtime|perdure|session)"),
        _explain,
    ),
    Task(
        "list files",
        "list the files",
        _words(r"\b(?:list|show|which)\b.{0,40}\bfiles\b"),
        _list_files,
    ),
    Task(
        "find text",
        'find the text "hello"',
        _words(
            r"\b(?:find|search|grep)\b(?: for)?(?: the)?(?: text| word)? ?"
            r"(?:[\"'`](?P<quoted>[^\"'`\n]{1,200})[\"'`]|(?P<word>[\w.-]{2,80}))"
        ),
        _find_text,
    ),
    Task("run tests", "run the tests", _words(r"\brun\b.{0,20}\btests?\b"), _run_tests),
    Task(
        "run a command",
        "run `uname -a`",
        _words(
            r"\b(?:run|execute)\b(?: the)?(?: command)?:? ?"
            r"(?:`(?P<quoted>[^`\n]{1,500})`|(?P<rest>[^`\n]{2,500}))"
        ),
        _run_command,
    ),
    Task(
        "create a file",
        "create a file hello.txt with Hello!",
        _words(
            r"\b(?:create|write|make|add)\b.{0,40}?[\"'` ]"
            r"(?P<path>[\w./-]{0,200}\.\w{1,10})\b[\"'`]?"
            r"(?:.{0,20}?\b(?:with|containing|saying)\b:?(?: the)?(?: text| content)?"
            r"\s*[\"'`]?(?P<content>[^\"'`]{1,500}))?"
        ),
        _create_file,
    ),
)

_CAPABILITIES: Final = "\n".join(
    (
        "It does not understand prompts. It recognises these tasks and drives the real tools:",
        "",
        *(f"- {task.title}, for example: {task.example}" for task in TASKS),
        "",
        "To work with a real model, name a provider in opencode.json and select its model; any",
        "server that speaks OpenAI Chat Completions will do, also one on this machine.",
    )
)

_EXPLANATION: Final = "\n".join(
    (
        "Perdure keeps coding-agent conversations, called Sessions. A prompt is first admitted and",
        "made durable, then a model is called with the Session's history; the tools that it asks",
        "for run in your directory after the permission rules allow it, and their results go back",
        "to the model until it has no more to ask for.",
        "",
        "Every step is an event in a log. A process that is killed loses nothing that was",
        "acknowledged, and any client may follow a Session from any event on.",
    )
)
