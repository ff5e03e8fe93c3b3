"""A process that brings a database to the current schema and says how it went."""

import sys

from perdure.store import migrate

if __name__ == "__main__":
    sys.stdin.readline()
    sys.stdout.write(f"{migrate.migrate(sys.argv[1])}\n")
