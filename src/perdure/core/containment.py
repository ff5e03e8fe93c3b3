"""Whether one path lies inside another, by spelling alone. Links are the caller's to resolve."""


def is_within(path: str, root: str) -> bool:
    """Whether the normalised `path` is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
