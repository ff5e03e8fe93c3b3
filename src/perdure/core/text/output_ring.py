"""What a terminal printed: the newest part of it, with an absolute position for every character.

Positions count UTF-16 units, as scripts in a browser count the text that they received. A reader
keeps its own position and takes what came since; one that fell behind what is kept can tell.
"""

from collections import deque


class OutputRing:
    def __init__(self, *, units_max: int) -> None:
        self._units_max = units_max
        self._chunks: deque[tuple[int, str]] = deque()
        """Each with the position at which it begins."""
        self.end = 0

    @property
    def start(self) -> int:
        """The oldest position that is kept."""
        return self._chunks[0][0] if self._chunks else self.end

    def append(self, text: str) -> None:
        self._chunks.append((self.end, text))
        self.end += units(text)
        # The newest chunk stays, however long: readers must be able to catch up with it.
        while len(self._chunks) > 1 and self.end - self.start > self._units_max:
            self._chunks.popleft()

    def since(self, position: int) -> str:
        """Everything from `position` on; all that is kept, if that begins later."""
        wanted: list[str] = []
        for begins, text in reversed(self._chunks):
            if begins < position:
                wanted.append(_skip(text, position - begins))
                break
            wanted.append(text)
        return "".join(reversed(wanted))


def units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _skip(text: str, count: int) -> str:
    """`text` without its first `count` units; half a character becomes a replacement."""
    if text.isascii():
        return text[count:]
    data = text.encode("utf-16-le", "surrogatepass")
    return data[2 * count :].decode("utf-16-le", "replace")
