"""A program for the sandbox: tries ways around the list of hosts, and prints what came of each.

Its argument is a JSON list of attempts: `["proxy", TEXT]` sends bytes to the proxy, `["tunnel",
HEAD, TEXT]` sends the second after an answer with 200, `["tls", HOST, NAME]` begins TLS with a name
in a tunnel, `["python", CODE]` runs code.
"""

import json
import socket
import ssl
import subprocess
import sys

PROXY = ("127.0.0.1", 3128)
SECONDS = 3.0
EXPECTED = (
    *(OSError, AssertionError, LookupError, ValueError, RuntimeError, StopIteration),
    subprocess.SubprocessError,
)


def attempt(kind: str, *words: str) -> str:
    if kind == "python":
        exec(words[0], {})
        return "it went through"
    with socket.create_connection(PROXY, timeout=SECONDS) as connection:
        if kind == "proxy":
            connection.sendall(words[0].encode("latin-1"))
            return read_all(connection)
        if kind == "tls":
            connection.sendall(f"CONNECT {words[0]} HTTP/1.1\r\n\r\n".encode())
            said = connection.recv(1000)
            if b" 200 " not in said:
                return said.decode("latin-1")
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.wrap_socket(connection, server_hostname=words[1]).close()
            return "TLS began"
        connection.sendall(words[0].encode("latin-1"))
        said = connection.recv(1000)
        if b" 200 " not in said:
            return said.decode("latin-1")
        connection.sendall(words[1].encode("latin-1"))
        return read_all(connection)


def read_all(connection: socket.socket) -> str:
    data = b""
    while part := connection.recv(65536):
        data += part
    return data.decode("latin-1")


for each in json.loads(sys.argv[1]):
    try:
        result = attempt(*each)
    except EXPECTED as error:
        result = f"{type(error).__name__}: {error}"
    sys.stdout.write(f"{json.dumps(result)}\n")
