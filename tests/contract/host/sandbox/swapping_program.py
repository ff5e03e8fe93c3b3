"""A program: exchanges two paths again and again, and prints how often when its input ends.

A directory and a link to another one change places at once, so that there is always something at
the path, and every check of it may be wrong a moment later.
"""

import ctypes
import os
import select
import sys

_HERE = -100
_EXCHANGE = 2


def main() -> None:
    first, second = (os.fsencode(path) for path in sys.argv[1:3])
    libc = ctypes.CDLL(None, use_errno=True)
    swaps = 0
    while not select.select([0], [], [], 0)[0]:
        for _ in range(50):
            if libc.renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0:
                swaps += 1
    sys.stdout.write(f"{swaps}\n")


if __name__ == "__main__":
    main()
