"""Paths as texts."""


def is_within(path: str, root: str) -> bool:
    """Whether the normalised `path` is `root` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
