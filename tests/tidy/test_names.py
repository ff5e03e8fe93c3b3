"""Module names are made of glossary terms and of words that the field uses."""

import re
from collections.abc import Mapping
from typing import Final

import pytest

from tests.tidy import source_tree
from tests.tidy.source_tree import ROOT

CONTEXT: Final = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")

WORDS: Final[Mapping[str, str]] = {
    "architecture": """
        acp app built builtin cli coordination coordinator core deps engine factory host human in
        installed llm main monitor net ops platform ports public runtime services shared site store
        testing to work
    """,
    "commands of the program": """
        apply archive backup compact completion delete diff doctor export follow fork import migrate
        move open read recover redo rename repair restore resuming revert run serve show undo write
    """,
    "concurrency": """
        background blocking callback crash cycle detached dispatch execution interrupt
        lazy lock loop offload orphan ownership peer process progress queue record resumption runner
        spawn startup sync wake watch watchdog watcher
    """,
    "conversation": """
        activity admission agent answer approval attachment
        attention children choice compactor cut delta description details
        end failed failure fallback hub id inbox known native outcome own permission plan prefix
        preserved preview project pruning question reasoning receipt recorder recovery repeated
        report rules slug state status step summarizer summary title todowrite tracking transcript
        window
    """,
    "proof of exports": """
        chain copy ed25519 verify writer
    """,
    "cloud providers": """
        anthropic aws bedrock chat cloud gemini key keyring local oauth openai responses
        rs256 secrets signature vertex
    """,
    "editors": """
        answers asking blocks choices content diffs features feed make messages notes option
        prompt prompting protocols requests rpc splitter timestamps updates
    """,
    "HTTP": """
        acceptor access address asgi auth binding body connection cursor dial endpoint
        exchange frame group guard handler head header http list listener loopback media network
        openapi operation pager proxied proxy query reconnect refused remote reset response result
        route routing socket socks sse start stream tls translation transport uri v1
        web webfetch websearch websocket
    """,
    "MCP": """
        ag argument authorization connector elicitation era inbound meter offered
        rate resource restart sdk stdio ui
    """,
    "operating system and shell": """
        bash bubblewrap clock code descriptor directory filesystem filter fs git harmless health
        input kernel kind landlock launch launched launcher literal log
        login metrics namespace parent
        piped policy post private privilege program repository sandbox scan scratch search seatbelt
        shell storage suspicion syscall telemetry time tree vcs workspace wrapper
    """,
    "programming": """
        api backend build
        codec demo deprecation error faulty field function generated histogram index
        instance limits
        manual mode name problem pytest register schema seed scripted seeded selection setting shape
        suggestion symbol type typed unknown value version
    """,
    "storage": """
        atomic cache cached checks committer config configured confined data database
        deletion document download encoded encoding entry legacy line manifest mark
        migration mutation origin page projector redaction restorable row scalar size sqlite table
    """,
    "text formats": """
        assignment decoding exact form format front fuzzy glob grammar grep html ignore image json
        jsonc markdown matter mime parser patch pattern phrase render ring script style
        substitution tag template text token tui visible wildcard word xml yaml
    """,
}
"""By the field that uses them. A new word needs a place here, or an entry in CONTEXT.md."""


def test_every_word_of_a_module_name_is_known() -> None:
    known = glossary(CONTEXT) | {word for words in WORDS.values() for word in words.split()}
    found = sorted(
        f"{module.name}: {word}"
        for module in source_tree.modules()
        for word in words_of(module.name)
        if not is_known(word, known)
    )
    assert found == []


def test_no_word_stands_in_two_groups() -> None:
    listed = [word for words in WORDS.values() for word in words.split()]
    assert [word for word in sorted(set(listed)) if listed.count(word) > 1] == []


@pytest.mark.parametrize(
    ("word", "known"),
    [("queries", True), ("query", True), ("boundary", True), ("nursery", False), ("desk", False)],
)
def test_a_word_is_known_in_the_singular_and_the_plural(word: str, *, known: bool) -> None:
    assert is_known(word, {"query", "boundaries"}) is known


def glossary(text: str) -> set[str]:
    """The words of all terms that a glossary defines."""
    terms = re.findall(r"\*\*([^*]+)\*\*", text)
    return {
        form
        for term in terms
        for word in re.findall(r"[a-z]+", term.lower())
        for form in forms(word)
    }


def words_of(name: str) -> list[str]:
    parts = name.removesuffix(".py").removesuffix("__init__").split("/")
    return [word for part in parts for word in part.split("_") if word]


def is_known(word: str, known: set[str]) -> bool:
    return not forms(word).isdisjoint(known)


def forms(word: str) -> set[str]:
    """A noun in the singular and the plural, as far as spelling tells."""
    found = {word, f"{word}s", word.removesuffix("s"), word.removesuffix("es")}
    if word.endswith("y"):
        found.add(f"{word[:-1]}ies")
    if word.endswith("ies"):
        found.add(f"{word[:-3]}y")
    return found
