"""Links between pages: from places in the repository to places in the site, and their check."""

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

# `](target)`; the target of `](https://...)` is left as it is.
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1", flags=re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$", flags=re.MULTILINE)
_ADDRESS: Final = re.compile(r"^[a-z][a-z0-9+.-]*:")


def fit(text: str, *, origin: str, place: str, places: Mapping[str, str], source: str) -> str:
    """The Markdown of a page with links that lead where their targets stand in the site.

    `origin` is the page's file in the repository, `place` its path in the site, and `places` says
    the same of all pages. Files that are no page are linked in the repository at `source`.
    """

    def fitted(match: re.Match[str]) -> str:
        target, mark, anchor = match.group(1).partition("#")
        if not target or _ADDRESS.match(target):
            return match.group(0)
        file = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        stands = places.get(file, file if file in places.values() else "")
        if stands:
            target = posixpath.relpath(stands, posixpath.dirname(place) or ".")
        else:
            target = f"{source}/blob/main/{file}"
        return f"]({target}{mark}{anchor})"

    return _LINK.sub(fitted, text)


def list_broken(pages: Mapping[str, str]) -> Iterator[str]:
    """Links of a site's pages (path -> Markdown) to a page or a heading that is not there."""
    anchors = {path: frozenset(list_anchors(text)) for path, text in pages.items()}
    for path, text in pages.items():
        for link in _LINK.findall(_FENCE.sub("", text)):
            target, _, anchor = link.partition("#")
            if _ADDRESS.match(link):
                continue
            page = posixpath.normpath(posixpath.join(posixpath.dirname(path), target or path))
            page = path if not target else page
            if page not in anchors:
                yield f"{path}: {link} leads to no page"
            elif anchor and anchor not in anchors[page]:
                yield f"{path}: {link} leads to no heading"


def list_anchors(text: str) -> Iterator[str]:
    """The anchors that the renderer gives to the headings of a page."""
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        slug = _slug(heading)
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        yield f"{slug}_{count}" if count else slug


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).replace("`", "")
    folded = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", folded).strip().lower())
