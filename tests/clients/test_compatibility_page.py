"""The tables of clients in docs/compatibility.md name the installed versions and real tests."""

import re
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (.+?) \| ([\d.a]+) \| (.+?) \| (.+?) \| (`test_.+`) \|$", PAGE, re.MULTILINE
)


def installed() -> dict[str, str]:
    """The locked versions, by the word that the page has for the client."""
    lock: JsonObject = codec.decode_any((HERE / "package-lock.json").read_bytes())
    packages = {name.rpartition("node_modules/")[2]: it for name, it in lock["packages"].items()}
    program = packages["opencode-linux-x64-baseline"]["version"]
    python = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    found = re.search(r"^opencode-ai==(\S+)", python, re.MULTILINE)
    assert found is not None
    return {
        "opencode attach": program,
        "opencode run": program,
        "web app": program,
        "createOpencode": packages["@opencode-ai/sdk"]["version"],
        "ai-sdk-provider": packages["ai-sdk-provider-opencode-sdk"]["version"],
        "Python SDK": found[1],
        "@ag-ui/client": packages["@ag-ui/client"]["version"],
        "@modelcontextprotocol/sdk": packages["@modelcontextprotocol/sdk"]["version"],
    }


def test_each_client_is_named_with_the_version_that_is_tried() -> None:
    told = {word: [row[1] for row in ROWS if word in row[0]] for word in installed()}
    assert told == {word: [version] for word, version in installed().items()}
    assert len(ROWS) == len(told)


def test_the_proofs_are_the_tests_of_this_folder() -> None:
    named = {name for row in ROWS for name in re.findall(r"`(test_\w+\.py)`", row[4])}
    here = {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name}
    assert named == here


def test_each_feature_of_the_terminal_ui_is_proved_and_each_proof_is_a_feature() -> None:
    named = re.findall(r"`(test_\w+)`", PAGE)
    sources = (path.read_text(encoding="utf-8") for path in HERE.glob("test_terminal_*.py"))
    tests = [
        name
        for text in sources
        for name in re.findall(r"^async def (test_\w+)", text, re.MULTILINE)
    ]
    assert sorted(named) == sorted(tests)
