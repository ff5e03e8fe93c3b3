"""The launcher's half of the network by host list: a listener inside, served from outside.

A socket belongs to the network in which it was made, whichever process accepts its connections. So
the launcher makes a listener on the loopback interface of the command's own network, and hands it
to the server. Nothing else leads out of that network.
"""

import os
import socket
from typing import Final

HOST: Final = "127.0.0.1"
PORT: Final = 3128
"""As core.sandbox.proxy_environment has them, which the launcher does not load."""
_BACKLOG: Final = 64


class Offer:
    """A connection to the server that waits for the listener of one command.

    It must be opened before the sandbox is made. The server serves the listener until all copies of
    this connection are closed.
    """

    def __init__(self, word: str) -> None:
        """`word` is a token, a colon and the path of the server's socket. Raises OSError."""
        token, _, path = word.partition(":")
        self._token = token
        self._connection = connect(path)

    def make_listener(self) -> None:
        """Listen in the network of this process, and hand the listener over."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind((HOST, PORT))
            listener.listen(_BACKLOG)
            socket.send_fds(self._connection, [self._token.encode()], [listener.fileno()])

    def close(self) -> None:
        """Close this process's copy."""
        self._connection.close()


def connect(path: str) -> socket.socket:
    """A connection to a local socket, whose path may be longer than such a path can be."""
    # Loaded here: the server loads this module, and only a command that uses the proxy needs it.
    from perdure.host.sandbox import kernel

    folder = kernel.open_path(os.path.dirname(path))
    if folder is None:
        raise FileNotFoundError(2, "there is no proxy", path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection
