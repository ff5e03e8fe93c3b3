"""Paths as texts."""


def is_within(path: str, root: str) -> bool:
    """Whether the normalised `path` is `root` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def printable(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become replacement characters."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
