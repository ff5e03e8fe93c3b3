"""Another process of the user's: stores so many credentials, one after the other."""

import sys

from perdure.host.credentials.file import FileCredentials
from tests.contract.host.stored import key


def main(directory: str, name: str, count: str) -> None:
    store = FileCredentials(directory)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(count)):
        store.put(key(f"{name}-{number}"), instead_of=None)
        store.put(key("shared", value=f"{name}-{number}"), instead_of=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
