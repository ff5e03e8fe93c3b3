"""Texts of others with every character spelled out that a screen would hide or obey.

A text that is shown to a person who decides about it must not look like another one.
"""

from typing import Final

# Letters that are printable by their class and look like nothing: fillers and variation selectors.
_BLANK_LETTERS: Final = frozenset(
    ["\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"]
    + [chr(code) for code in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10))]
    + [chr(code) for code in range(0xE0100, 0xE01F0)]
)


def make_visible(text: str) -> str:
    """Return `text` with every character spelled out that a screen would hide or obey.

    Newlines stay, tabs become blanks. Blanks of other scripts and invisible letters are spelled
    out too, so that a text cannot look like another one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_spell, text.expandtabs()))


def _spell(character: str) -> str:
    if character == "\n" or (character.isprintable() and character not in _BLANK_LETTERS):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
