"""Host names in the form that is sent: ASCII, as browsers make it (UTS 46, nontransitional)."""


def to_ascii(host: str) -> str:
    """A host name in lower-case ASCII. Raises UnicodeError for one that cannot be a name.

    Compatibility characters such as full-width digits become what they stand for.
    """
    if host.isascii():
        return host.lower()
    # Its tables take long to load, and few hosts need them.
    import idna

    return idna.encode(host, uts46=True).decode("ascii").lower()
