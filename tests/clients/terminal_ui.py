"""The published terminal UI, attached to a server of ours, and what its user does."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from tests.clients.equipment import Equipment
from tests.clients.terminal import Terminal, terminal
from tests.support.project import ProjectFolders

BUSY = "esc interrupt"


@asynccontextmanager
async def attached(
    equipment: Equipment, folders: ProjectFolders, port: int, *options: str
) -> AsyncGenerator[Terminal]:
    """Start the terminal UI and wait for its first screen."""
    address = f"http://127.0.0.1:{port}"
    async with terminal(
        *(str(equipment.opencode), "attach", address, *options),
        variables=client_variables(folders),
        directory=folders.project,
    ) as opened:
        await opened.until("ctrl+p commands")
        yield opened


def client_variables(folders: ProjectFolders) -> Mapping[str, str]:
    """The environment of a client that reaches nothing but the server."""
    return {
        **folders.variables,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


async def send(tui: Terminal, prompt: str) -> None:
    """Type a prompt, see it in the input, and send it."""
    tui.type(prompt)
    await tui.until(prompt)
    tui.press("enter")


async def ask(tui: Terminal, prompt: str, answer: str) -> str:
    """Send a prompt and wait until its answer is whole; the screen."""
    await send(tui, prompt)
    return await tui.until(answer, without=[BUSY])


async def choose(tui: Terminal, command: str, description: str) -> None:
    """Choose a slash command of the terminal UI from its list."""
    tui.type(command)
    await tui.until(f"{command} ", description)
    tui.press("enter")


async def move(tui: Terminal, key: str, choices: tuple[str, ...], *, to: str) -> None:
    """Press `key` until `to` has the background of the first choice, which is marked at first."""
    first, *others = choices
    await tui.until(
        lambda shown: tui.background(first) not in {"", *(tui.background(each) for each in others)}
    )
    mark = tui.background(first)
    for choice in choices[1 : choices.index(to) + 1]:
        tui.press(key)
        await tui.until(lambda shown, choice=choice: tui.background(choice) == mark)
