"""A program: restricts itself, then becomes the command that its arguments name.

    WALL NETWORK FILTER DIRECTORY [PLACE]... -- PROGRAM [ARGUMENT]...

WALL is `namespaces`, `landlock`, or `filter` inside those of bubblewrap; NETWORK is `network`,
`offline`, or `proxy:` with a word of the filtering proxy; FILTER a seccomp program in hexadecimal
digits, and a PLACE a letter (write, read, hide, keep, or a directory to make and read) before a
path, outer places first.
Nothing of a command is started if a step fails.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from perdure.host.sandbox import landlock, namespaces, privileges

if TYPE_CHECKING:
    from perdure.host.sandbox.proxy_listener import Offer

_PROXY: Final = "proxy:"
_RESET: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores and a command must not."""


def launch(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become the command, with this environment."""
    wall, network, program, directory, *rest = arguments
    end = rest.index("--")
    places = [(place[0], place[1:]) for place in rest[:end]]
    command = rest[end + 1 :]
    try:
        offer = _open_offer(network)
        if wall == "namespaces":
            own_network = network != "network"
            namespaces.enter(places, bytes.fromhex(program), own_network=own_network, offer=offer)
        else:
            if wall == "landlock":
                landlock.restrict(places)
            if offer is not None:
                namespaces.keep(offer)
            privileges.give_up(bytes.fromhex(program))
        os.chdir(directory)
    except OSError as error:
        _fail(f"the sandbox could not be made: {error}", namespaces.FAILED_STATUS)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        _fail(f"{command[0]}: {error.strerror}", 127 if error.errno == 2 else 126)


def _open_offer(network: str) -> "Offer | None":
    if not network.startswith(_PROXY):
        return None
    # Loaded here: most commands have no network, and wait for what is loaded.
    from perdure.host.sandbox.proxy_listener import Offer

    return Offer(network.removeprefix(_PROXY))


def main() -> NoReturn:
    launch(sys.argv[1:], os.environ)


def _fail(message: str, status: int) -> NoReturn:
    os.write(2, f"perdure: {message}\n".encode(errors="replace"))
    os._exit(status)
