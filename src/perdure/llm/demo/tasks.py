"""The tasks of the demo model: each is recognised by words and becomes calls of the real tools."""

import re
import shlex
from collections.abc import Callable
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value


class Call(Value, kw_only=True):
    """One step: say a sentence, then call a tool."""

    says: str
    tool: str
    input: JsonObject
    repeatable: bool = False
    """Whether it is called again if a restart of the server interrupted it."""


class Part(Value, kw_only=True):
    """What the model does about one part of a prompt."""

    calls: tuple[Call, ...] = ()
    closing: str
    shows_result: bool = False
    """Whether the result of the last tool follows the closing text."""
    path: str | None = None
    """The file that it is about; the parts after it may say `it`."""


class Task(Value):
    """A kind of request: its name, an example, how it is recognised and what is done."""

    title: str
    example: str
    pattern: re.Pattern[str]
    make: Callable[[re.Match[str]], Part]


def find_part(request: str) -> tuple[Part, str] | None:
    """What is done about one request, and the words after what was recognised.

    None if no task is recognised in it.
    """
    if _TELLING.search(request) is None:
        return None
    for task in TASKS:
        match = task.pattern.search(request)
        if match is not None:
            return task.make(match), request[match.end() :]
    return None


def _ask_permission(_: re.Match[str]) -> Part:
    says = "The next call reads a file outside this directory, so you are asked for permission."
    return Part(
        calls=(Call(says=says, tool="read", input={"path": "/etc/hosts"}),),
        closing="You allowed it. This is what the file holds:",
        shows_result=True,
    )


def _edit_in_steps(_: re.Match[str]) -> Part:
    path = "perdure-demo.txt"
    before, after = "The second line is old.", "The second line is new."
    return Part(
        calls=(
            _write(f"Step 1 of 3: write {path}.", path, f"The first line stays.\n{before}\n"),
            _edit("Step 2 of 3: replace its second line.", path, before, after),
            Call(says="Step 3 of 3: read it back.", tool="read", input={"path": path}),
        ),
        closing=f"Done: {path} was written, edited and read back.",
        shows_result=True,
    )


def _explain(_: re.Match[str]) -> Part:
    return Part(closing=_EXPLANATION)


def _stop(_: re.Match[str]) -> Part:
    return Part(closing="")


def _replace_text(match: re.Match[str]) -> Part:
    path = match["path"] or match["first_path"]
    old = match["old"] or match["old_word"]
    new = match["new_word"] or match["new"] or ""
    if path is None:
        return Part(closing=f"It needs the name of the file in which to replace `{old}`.")
    return Part(
        calls=(
            Call(says=f"First it reads {path}.", tool="read", input={"path": path}),
            _edit(f"It replaces `{old}` with `{new}` in {path}.", path, old, new),
        ),
        closing=f"{path} is changed.",
        path=path,
    )


def _append_text(match: re.Match[str]) -> Part:
    path, text = match["path"], match["text"]
    command = f"printf '%s\\n' {shlex.quote(text)} >> {shlex.quote(path)}"
    says = f"The bash tool adds a line to {path}."
    return Part(
        calls=(Call(says=says, tool="bash", input={"command": command}),),
        closing=f"{path} has one more line.",
        path=path,
    )


def _delete_file(match: re.Match[str]) -> Part:
    return _bash(f"The bash tool deletes {match['path']}.", f"rm -- {shlex.quote(match['path'])}")


def _rename_file(match: re.Match[str]) -> Part:
    old, new = match["path"], match["new"]
    command = f"mv -n -- {shlex.quote(old)} {shlex.quote(new)}"
    return _bash(f"The bash tool renames {old} to {new}.", command, path=new)


def _copy_file(match: re.Match[str]) -> Part:
    old, new = match["path"], match["new"]
    command = f"cp -n -- {shlex.quote(old)} {shlex.quote(new)}"
    return _bash(f"The bash tool copies {old} to {new}.", command, path=new)


def _create_folder(match: re.Match[str]) -> Part:
    path = match["path"]
    return _bash(f"The bash tool creates the folder {path}.", f"mkdir -p -- {shlex.quote(path)}")


def _list_files(match: re.Match[str]) -> Part:
    folder = (match["folder"] or "").strip("/")
    is_here = folder in ("", ".", "here")
    pattern = "**/*" if is_here else f"{folder}/**/*"
    says = f"The glob tool lists the files {'here' if is_here else f'in {folder}'}."
    return Part(
        calls=(Call(says=says, tool="glob", input={"pattern": pattern}),),
        closing="The glob tool answered:",
        shows_result=True,
    )


def _find_text(match: re.Match[str]) -> Part:
    wanted = match["quoted"] or match["word"]
    says = f"The grep tool looks for {wanted!r}."
    return Part(
        calls=(Call(says=says, tool="grep", input={"pattern": re.escape(wanted)}),),
        closing="The grep tool answered:",
        shows_result=True,
    )


def _run_tests(_: re.Match[str]) -> Part:
    command = (
        "if grep -qs '^test:' Makefile; then make test; "
        "elif [ -f package.json ]; then npm test; "
        "elif python3 -c 'import pytest' 2>/dev/null; then python3 -B -m pytest -q; "
        "else python3 -B -m unittest; fi"
    )
    return _bash("The bash tool runs this project's tests.", command, repeatable=True)


def _run_command(match: re.Match[str]) -> Part:
    command = match["quoted"] or match["named"] or match["rest"].strip()
    is_test = _TEST_RUN.search(command) is not None
    return _bash("The bash tool runs your command.", command, repeatable=is_test)


def _create_file(match: re.Match[str]) -> Part:
    path = match["path"]
    given = match["quoted"] or match["content"]
    content = (given or "Written by the demo model.").strip() + "\n"
    return Part(
        calls=(_write(f"The write tool creates {path}.", path, content),),
        closing=f"{path} was written.",
        path=path,
    )


def _read_file(match: re.Match[str]) -> Part:
    path = match["path"] or match["named"]
    return Part(
        calls=(Call(says=f"The read tool reads {path}.", tool="read", input={"path": path}),),
        closing=f"{path} holds:",
        shows_result=True,
        path=path,
    )


def _call_subagent(match: re.Match[str]) -> Part:
    agent, request = match["agent"] or "general", match["request"].strip()
    description = " ".join(request.split()[:5])
    given: JsonObject = {"subagent_type": agent, "description": description, "prompt": request}
    return Part(
        calls=(Call(says=f"The subagent {agent} does this part.", tool="task", input=given),),
        closing="The subagent answered:",
        shows_result=True,
    )


def _bash(says: str, command: str, *, repeatable: bool = False, path: str | None = None) -> Part:
    call = Call(says=says, tool="bash", input={"command": command}, repeatable=repeatable)
    closing = "The command has ended. Its output:"
    return Part(calls=(call,), closing=closing, shows_result=True, path=path)


def _write(says: str, path: str, content: str) -> Call:
    return Call(says=says, tool="write", input={"path": path, "content": content})


def _edit(says: str, path: str, old: str, new: str) -> Call:
    return Call(says=says, tool="edit", input={"path": path, "oldString": old, "newString": new})


def _words(pattern: str) -> re.Pattern[str]:
    return lazy_pattern(pattern, re.IGNORECASE)


_TELLING: Final = lazy_pattern(
    r"\b(?:use|ask|call|let|permission|outside|edit|multi-?step|several|explain|what|how|in|replace"
    r"|change|add|append|delete|remove|rename|move|copy|create|make|find|search|grep|list|show|which"
    r"|run|execute|write|put|save|read|cat|open|print|display|stop|finish|done|that)\b",
    re.IGNORECASE,
)
"""A word that each request of a task has: without one, no other pattern is tried."""
_TEST_RUN: Final = lazy_pattern(
    r"\b(?:pytest|unittest|(?:make|npm|cargo|go) (?:run )?(?:test|check))\b"
)
"""Commands that do no harm when they are run again."""
_FILE: Final = r"[\"'`]?(?P<path>[\w./-]{0,200}\.\w{1,10}|[\w./-]{0,150}\w{1,50})[\"'`]?"
TASKS: Final = (
    Task(
        "call a subagent",
        "use a subagent to list the files",
        _words(
            r"^(?:use|ask|call|let) (?:a |the )?(?:(?P<agent>[a-z]{2,30}) )?(?:sub)?agent"
            r"(?: to)? (?P<request>.{2,500})"
        ),
        _call_subagent,
    ),
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
        _edit_in_steps,
    ),
    Task(
        "explain this runtime",
        "explain this runtime",
        _words(r"\b(?:explain|what is|how does)\b.{0,40}\b(?:runtime|perdure|session)"),
        _explain,
    ),
    Task(
        "change a text in a file",
        "replace `old` with `new` in notes.txt",
        _words(
            r"^(?:in [\"'`]?(?P<first_path>[\w./-]{1,200}\w)[\"'`]?,? )?(?:replace|change) "
            r"(?:(?P<quote>[\"'`])(?P<old>[^\"'`\n]{1,200})(?P=quote)|(?P<old_word>[\w.-]{1,80})) "
            r"(?:with|to|by|into) "
            r"(?:[\"'`](?P<new>[^\"'`\n]{0,200})[\"'`]|(?P<new_word>[\w.-]{1,80}))"
            r"(?: in (?:the )?(?:file )?[\"'`]?(?P<path>[\w./-]{1,200}\w)[\"'`]?)?"
        ),
        _replace_text,
    ),
    Task(
        "add a line to a file",
        'add "buy milk" to notes.txt',
        _words(
            r"^(?:add|append) (?:the |a )?(?:new )?(?:line |text )?(?:saying |with )?"
            r"[\"'`](?P<text>[^\"'`\n]{1,200})[\"'`] (?:to|(?:to|at) the end of) "
            r"(?:the )?(?:file )?" + _FILE
        ),
        _append_text,
    ),
    Task(
        "delete a file",
        "delete notes.txt",
        _words(r"^(?:delete|remove) (?:the )?(?:file )?" + _FILE),
        _delete_file,
    ),
    Task(
        "rename a file",
        "rename notes.txt to old-notes.txt",
        _words(
            r"^(?:rename|move) (?:the )?(?:file )?"
            + _FILE
            + r" to [\"'`]?(?P<new>[\w./-]{0,200}\w)[\"'`]?"
        ),
        _rename_file,
    ),
    Task(
        "copy a file",
        "copy notes.txt to more-notes.txt",
        _words(
            r"^copy (?:the )?(?:file )?"
            + _FILE
            + r" (?:to|into) [\"'`]?(?P<new>[\w./-]{0,200}\w/?)[\"'`]?"
        ),
        _copy_file,
    ),
    Task(
        "create a folder",
        "create a folder src",
        _words(
            r"^(?:create|make|add) (?:a |the )?(?:new )?(?:folder|directory) (?:called |named )?"
            r"[\"'`]?(?P<path>[\w./-]{0,200}\w)/?[\"'`]?"
        ),
        _create_folder,
    ),
    Task(
        "list files",
        "list the files",
        _words(
            r"^find (?:all |the ){0,2}files(?: here)?$"
            r"|\b(?:list|show|which|what)\b.{0,40}\bfiles\b"
            r"(?:,? (?:there are|are (?:there|here|in here)|do (?:I|you|we) have|exist|here))?"
            r"(?: (?:in|of|under) (?:the )?(?:folder |directory )?[\"'`]?(?P<folder>[\w./-]{1,200})"
            r"[\"'`]?)?"
        ),
        _list_files,
    ),
    Task(
        "find text",
        'find the text "hello"',
        _words(
            r"\b(?:find|search|grep)\b(?: for)?(?: all| every| each| any| the| a){0,3}"
            r"(?: (?:files?|lines?|places?)"
            r"(?: with| containing| that (?:contain|have|say)s?| of)?)?"
            r"(?: the| a)?(?: text| word)? ?"
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
            r"(?:`(?P<quoted>[^`\n]{1,500})`|\"(?P<named>[^\"\n]{1,500})\"$|(?P<rest>[^`\n]{2,500}))"
        ),
        _run_command,
    ),
    Task(
        "write a text into a file",
        'write "buy milk" into notes.txt',
        _words(
            r"^(?:write|put|save) (?:the )?(?:text |line )?"
            r"(?P<mark>[\"'`])(?P<quoted>[^\"'`]{1,500})(?P=mark)(?P<content>) "
            r"(?:in|to|into) (?:a |the )?(?:new )?(?:file )?(?:called |named )?" + _FILE
        ),
        _create_file,
    ),
    Task(
        "create a file",
        "create a file hello.txt with Hello!",
        _words(
            r"\b(?:create|write|make|add)\b.{0,40}?[\"'` ]"
            r"(?P<path>[\w./-]{0,200}\.\w{1,10})\b[\"'`]?"
            r"(?:.{0,20}?\b(?:with|containing|saying)\b:?(?: the)?(?: text| content)?"
            r"\s*(?:(?P<mark>[\"'`])(?P<quoted>(?:(?!(?P=mark))[\s\S]){1,500})(?P=mark)"
            r"|(?P<content>[\s\S]{1,500})))?"
        ),
        _create_file,
    ),
    Task(
        "read a file",
        "read notes.txt",
        _words(
            r"^(?:read|cat|open) (?:me )?(?:the )?(?:file )?[\"'`]?"
            r"(?P<path>[\w./-]{0,200}\w)[\"'`]?"
            r"|^(?:show|print|display)\b.{0,40}?[\"'` ](?P<named>[\w./-]{1,200}\.\w{1,10})\b"
        ),
        _read_file,
    ),
    Task("stop", "stop", _words(r"^(?:stop|finish|done|that is all)\b"), _stop),
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
