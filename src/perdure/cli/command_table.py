"""The table of commands: names in groups, with what each does and the module that does it.

The list of commands, the spelling of unknown ones and the shell completion come from here. It
imports nothing, because `--version` and `--help` load it.
"""

GROUPS: dict[str, dict[str, str]] = {
    "Everyday": {
        "run": "Send a prompt and show the work as it happens",
        "show": "Show a Session as it was shown while it ran",
        "diff": "Show the changes that a Session made to files",
        "undo": "Take back the last prompt and its changes to files",
        "redo": "Restore what undo took back",
        "sessions": "List Sessions, newest first",
        "search": "Find Sessions by words of their titles and messages",
        "models": "List the models that can be used here",
        "agents": "List the agents that can be used here",
        "web": "Open the web page, and start a server if none runs",
        "demo": "Show in 20 seconds what Perdure does, offline and without a key",
    },
    "Sessions": {
        "context": "Show what the model is told, and the size of the next request",
        "usage": "Show what a Session has used: money, tokens and turns",
        "budget": "Show or limit what a Session and its subagents may use",
        "jobs": "List the background commands of a Session, or cancel one",
        "compact": "Prune or summarise older messages to free context",
        "recover": "Decide about a request that a crash interrupted",
        "move": "Move a Session to another directory of its project",
        "fork": "Copy a Session into a new one",
        "rename": "Give a Session another title",
        "archive": "Archive a Session, or restore it",
        "export": "Print a Session with its messages and events as JSON",
        "verify": "Check that an exported Session is unchanged, and who signed it",
        "import": "Store a Session that was exported elsewhere",
        "delete": "Delete Sessions and everything stored for them",
    },
    "Setup": {
        "auth": "List, store and remove the credentials of providers",
        "config": "Show the configuration of this directory, and what you allowed for good",
        "trust": "Let all settings of a project's configuration count",
        "mcp": "List, add and test MCP servers, and log in to remote ones",
        "doctor": "Check versions, paths, the database and the configuration",
        "storage": "Show what takes up disk space, and free some of it",
        "backup": "Copy all Sessions to a directory while servers run",
        "restore": "Fill an empty data directory from a backup",
        "completion": "Print the completion script of a shell",
    },
    "Server": {
        "serve": "Start the HTTP server",
        "acp": "Be an agent of an editor, over the Agent Client Protocol",
        "mcp-server": "Offer Sessions to other agents as durable workers, over MCP",
    },
}

_PACKAGE = "perdure.cli.commands"
_MODULES = {
    "acp": f"{_PACKAGE}.protocols.acp",
    "import": f"{_PACKAGE}.session.import_session",
    "mcp": f"{_PACKAGE}.mcp.servers",
    "mcp-server": f"{_PACKAGE}.mcp.server",
    "web": f"{_PACKAGE}.web.command",
}
"""Modules that are not named like their command."""


def list_names() -> list[str]:
    """The names of all commands, in the order of the table."""
    return [name for commands in GROUPS.values() for name in commands]


def find_module(name: str) -> str | None:
    """The module of a command, whose `main` runs it; None if there is no such command."""
    for group, commands in GROUPS.items():
        if name in commands:
            package = f"{_PACKAGE}.session" if group == "Sessions" else _PACKAGE
            return _MODULES.get(name, f"{package}.{name}")
    return None
