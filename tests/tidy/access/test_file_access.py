"""Every place that opens files for a model asks the one module that decides about files.

`tools.files.file_permissions` decides what may be shown and changed. A new tool that reaches files
has to use it, and a new module that opens files has to be listed here with the reason.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from tests.tidy import source_tree
from tests.tidy.source_tree import Module

FILE_TOOLS: Final[Mapping[str, str]] = {
    "apply_patch": "changes files, compares and moves their content",
    "edit": "changes a file, compares its content",
    "glob": "shows names",
    "grep": "shows lines and names",
    "read": "shows content and names",
    "skill": "shows a skill's text and the names beside it",
    "write": "changes a file",
}
OTHER_TOOLS: Final[Mapping[str, str]] = {
    "bash": "runs a command: its own rules and the sandbox bound it",
    "bash_background": "shows what a command of the same Session printed",
    "bash_approval": "asks about a command",
    "bash_hosts": "asks about hosts of the network",
    "bash_sandbox": "prepares the sandbox of a command, and removes what may not be there",
    "question": "asks a person",
    "register": "lists the tools",
    "task": "starts a subagent, which is bound by the rules of its callers",
    "todowrite": "writes the todo list, which is no file",
    "webfetch": "takes addresses of the web only, no file: address",
    "websearch": "asks a search service",
}
OPENERS: Final[Mapping[str, str]] = {
    "location/agents/command_files.py": "templates that clients are shown; nothing runs them",
    "location/config/agent_files.py": "configuration, which models are not shown",
    "location/config/files.py": "configuration, which models are not shown",
    "location/config/trust.py": "what the user trusts, in the data directory",
    "location/context/file_pattern.py": "finds files that configured_instructions judges",
    "location/context/instructions.py": "judged by Instructions before it is read",
    "location/models/aws_login.py": "logins of the user",
    "location/models/facts_cache.py": "facts about models, in the data directory",
    "location/models/google_login.py": "logins of the user",
    "location/project/git.py": "reads which commit is checked out; nothing of it is shown",
    "location/project/git_changes.py": "moves a Session on a person's request",
    "location/project/place.py": "identity of the place; nothing of it is shown",
    "location/project/project.py": "identity of the project; nothing of it is shown",
    "location/project/repositories.py": "directories of references, in the data directory",
    "location/project/scratch_repository.py": "moves a Session on a person's request",
    "location/skills/cache.py": "downloaded skills, in the data directory",
    "location/skills/downloads.py": "downloaded skills, in the data directory",
    "location/skills/files.py": "judged by the skill tool and its Context Source",
    "location/skills/scan.py": "judged by the skill tool and its Context Source",
    "location/tools/sandbox_policy.py": "finds the git directory that commands may write",
    "location/workspace/attachments.py": "through the read tool",
    "location/workspace/files.py": "a person asks over HTTP: ADR 43 and 51",
    "location/workspace/language_servers.py": "the file that a tool has just changed",
    "runtime/background/job_monitor.py": "output of commands of the same Session",
    "runtime/background/jobs.py": "output of commands of the same Session",
    "runtime/files/revert.py": "undoes changes on a person's request: ADR 18",
    "runtime/files/session_diff.py": "what a Session changed, for a person: ADR 49",
    "runtime/locations/api.py": "a person asks over HTTP: ADR 43",
    "runtime/ops/health.py": "facts about this process",
    "runtime/plugins/installed.py": "programs that the user installed",
    "tools/api/output_store.py": "Managed Tool Output Files",
    "tools/builtin/apply_patch.py": "after file_permissions",
    "tools/builtin/edit.py": "after file_permissions",
    "tools/builtin/read.py": "after file_permissions",
    "tools/builtin/skill.py": "after file_permissions",
    "tools/builtin/write.py": "after file_permissions",
    "tools/files/mutation.py": "compares what its caller was allowed to change",
    "tools/files/post_edit.py": "reads again what a formatter made of a changed file",
    "tools/files/read_tracking.py": "a digest of what its caller was allowed to read",
    "tools/search/fallback_program.py": "a search program; search filters what it finds",
    "tools/search/search.py": "confirms lines that glob and grep have filtered",
}
"""Modules of the layers that act for a model or a client and open files, with why they may."""
_LAYERS: Final = ("location/", "runtime/", "tools/")
_OPENING: Final = frozenset({"open", "scandir", "listdir", "read_text", "read_bytes"})
_FILESYSTEMS: Final = frozenset(
    {"files", "filesystem", "cached_files", "_filesystem", "contents", "_files"}
)


def test_every_built_in_tool_says_whether_it_reaches_files() -> None:
    named = {module.name.removeprefix("tools/builtin/").removesuffix(".py") for module in tools()}
    assert named == FILE_TOOLS.keys() | OTHER_TOOLS.keys()


def test_every_tool_that_reaches_files_asks_the_module_that_decides() -> None:
    asking = {
        module.name.removeprefix("tools/builtin/").removesuffix(".py")
        for module in tools()
        if "file_permissions" in attributes(module.tree)
    }
    assert asking == FILE_TOOLS.keys()


def test_every_module_that_opens_files_is_listed_with_its_reason() -> None:
    opening = {
        module.name
        for module in source_tree.modules()
        if module.name.startswith(_LAYERS) and any(opened(module.tree))
    }
    assert opening == OPENERS.keys()


def tools() -> Iterator[Module]:
    for module in source_tree.modules():
        if module.name.startswith("tools/builtin/") and not module.name.endswith("__init__.py"):
            yield module


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def opened(tree: ast.AST) -> Iterator[str]:
    """The calls that open a file or a directory."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open"):
                yield "open"
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in _OPENING:
                yield name
            case ast.Attribute(value=base, attr="read" | "list") if name_of(base) in _FILESYSTEMS:
                yield ast.unparse(node.func)
            case _:
                continue


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""
