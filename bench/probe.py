"""Asks a server again and again how it is, and measures the longest wait: `python -m bench.probe`.

A process of its own, so that what the bench sends and computes does not delay it. For each line
on standard input it prints the longest wait since the last line, in milliseconds.
"""

from __future__ import annotations

import select
import socket
import sys
import time

PAUSE_SECONDS = 0.002
ANSWER_BYTES = 64 * 1024


def main() -> None:
    port, *paths = sys.argv[1:]
    connection = socket.create_connection(("127.0.0.1", int(port)))
    longest = 0.0
    while True:
        for path in paths:
            longest = max(longest, ask(connection, path))
        if select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            if not sys.stdin.readline():
                return
            print(round(longest * 1e3, 1), flush=True)
            longest = 0.0


def ask(connection: socket.socket, path: str) -> float:
    """Seconds from sending a request to the end of its answer."""
    began = time.monotonic()
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    received = connection.recv(ANSWER_BYTES)
    while not is_whole(received):
        received += connection.recv(ANSWER_BYTES)
    return time.monotonic() - began


def is_whole(received: bytes) -> bool:
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        return False
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= int(lengths[0].partition(b":")[2])


if __name__ == "__main__":
    main()
