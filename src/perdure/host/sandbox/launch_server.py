"""A program: forks launchers on request, because starting Python takes longer than most commands.

Its standard input is a socket. A request is a length, and words that end with a zero byte: the
number of arguments, the arguments of the launcher, the environment of the command; with the
descriptors of its output, its errors, and a pipe. The answer is the process id of the launcher,
which waits for a byte from the pipe, so that a command runs only after its start was recorded, and
at most once. It is a child of this program's parent, which therefore can wait for its end.

This program ends when its parent does.
"""

import os
import socket
import sys
from typing import Final, NoReturn

from perdure.host.sandbox import kernel, launcher

LENGTH_BYTES: Final = 4
FILES: Final = 3


def main() -> None:
    number = int(sys.argv[1])
    connection = socket.socket(fileno=0)
    while True:
        data, files, _, _ = socket.recv_fds(connection, LENGTH_BYTES, FILES)
        request = _receive(connection, data)
        if request is None or len(files) != FILES:
            return
        process = kernel.clone_for_parent(number)
        if not process:
            _become(request, files)
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % process)


def _receive(connection: socket.socket, data: bytes) -> list[str] | None:
    """The words of a request that begins with `data`; None at the end of the connection."""
    data += _read(connection, LENGTH_BYTES - len(data))
    if len(data) < LENGTH_BYTES:
        return None
    length = int.from_bytes(data, "big")
    words = _read(connection, length)
    return None if len(words) < length else os.fsdecode(words).split("\0")[:-1]


def _read(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            break
        parts += part
    return bytes(parts)


def _become(request: list[str], files: list[int]) -> NoReturn:
    os.setsid()
    output, errors, go = files
    if not os.read(go, 1):
        # The process that asked has died, or given up.
        os._exit(0)
    standard = (os.open(os.devnull, os.O_RDONLY), output, errors)
    for number, file in enumerate(standard):
        os.dup2(file, number)
    for file in {*standard, go} - {0, 1, 2}:
        os.close(file)
    count = int(request[0])
    variables = (word.partition("=") for word in request[1 + count :])
    launcher.launch(request[1 : 1 + count], {name: value for name, _, value in variables})
