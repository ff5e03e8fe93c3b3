"""What a language server publishes, sound and not, and the lines that a model reads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.language_server import diagnostic
from perdure.core.language_server.diagnostic import Diagnostic
from perdure.schema.codec import JsonObject, JsonValue


def item(line: int, message: str, **more: JsonValue) -> JsonObject:
    return {"range": {"start": {"line": line, "character": 4}}, "message": message, **more}


def errors(*items: JsonValue) -> tuple[Diagnostic, ...]:
    found = diagnostic.parse_published({"uri": "file:///a.py", "diagnostics": list(items)})
    assert found is not None
    return found.errors


def test_errors_are_told_in_the_order_of_their_lines() -> None:
    found = errors(
        item(8, "late", severity=1, source="mypy", code="arg-type"),
        item(0, "early\n  and long", code=12),
        item(1, "a warning", severity=2),
        item(1, "a hint", severity=4),
    )
    assert [error.told("src/a.py") for error in found] == [
        "src/a.py:1:5: error: early and long [12]",
        "src/a.py:9:5: error: late [mypy arg-type]",
    ]


@pytest.mark.parametrize(
    "spoilt",
    [
        5,
        None,
        {},
        item(-1, "before the file"),
        item(1, "x", severity=9),
        {"range": {}, "message": "x"},
        {"message": "x"},
        item(1, "x", code={"value": 1}),
    ],
)
def test_what_makes_no_sense_is_left_out_alone(spoilt: JsonValue) -> None:
    assert [error.message for error in errors(spoilt, item(0, "kept"))] == ["kept"]


def test_a_line_has_a_bound_and_so_has_their_number() -> None:
    found = errors(*[item(n, "x\n" * 100_000, source="s" * 10_000) for n in range(2_000)])
    assert len(found) == limits.LSP_DIAGNOSTICS_READ_MAX
    assert all(len(error.told("a.py")) <= limits.DIAGNOSTICS_LINE_CHARS_MAX for error in found)
    assert "\n" not in found[0].told("a.py")


@pytest.mark.parametrize("params", [None, 5, {}, {"uri": 5}, {"uri": "file:///a"}, {"uri": "x:y"}])
def test_what_names_no_file_is_not_published(params: JsonValue) -> None:
    assert diagnostic.parse_published(params) is None


@pytest.mark.parametrize("items", [None, 5, "x", {"a": 1}])
def test_diagnostics_that_are_no_list_are_none(items: JsonValue) -> None:
    found = diagnostic.parse_published({"uri": "file:///a.py", "diagnostics": items, "version": 3})
    assert found == diagnostic.Published("/a.py", 3, ())


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1))
def test_an_address_leads_back_to_its_file(name: str) -> None:
    path = f"/a b/{name}/x.py"
    if name not in {".", ".."}:
        assert diagnostic.path_of(diagnostic.uri_of(path)) == path
        assert diagnostic.path_of(Path(path).as_uri()) == path


def test_a_name_that_is_not_text_has_an_address_all_the_same() -> None:
    path = "/a\udcff.py"
    assert diagnostic.uri_of(path) == "file:///a%FF.py"
    assert diagnostic.path_of("file:///a%FF.py") == path


@pytest.mark.parametrize("uri", ["http://h/a", "file://elsewhere/a", "a.py", "", "file://[/a"])
def test_addresses_of_other_things_lead_nowhere(uri: str) -> None:
    assert diagnostic.path_of(uri) is None


@pytest.mark.parametrize(
    ("path", "language"),
    [("a.tsx", "typescriptreact"), ("a.PY", "python"), ("a.go", "go"), ("Makefile", "plaintext")],
)
def test_languages_have_their_names(path: str, language: str) -> None:
    assert diagnostic.language_of(path) == language
