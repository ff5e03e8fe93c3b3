"""Which programs look after files, by what the documents of a Location say together."""

from perdure.core.config_file.substitution import Trust
from perdure.core.settings import document as config_document
from perdure.core.settings import edit_programs
from perdure.core.settings.document import Document
from perdure.schema.codec import JsonObject, JsonValue


def document(value: JsonObject, *, trust: Trust = "user") -> Document:
    return config_document.read("/opencode.json", trust, value)


def server(**fields: JsonValue) -> JsonObject:
    return {"lsp": {"pyright": {"command": ["pyright", "--stdio"], **fields}}}


def test_a_language_server_is_read_as_it_was_written() -> None:
    entry = server(
        extensions=[".py", "pyi"], env={"A": "1"}, initialization={"python": {"strict": True}}
    )
    (found,) = edit_programs.configured_programs([document(entry)]).servers
    assert found.command == ("pyright", "--stdio")
    assert found.environment == {"A": "1"}
    assert found.initialization == {"python": {"strict": True}}
    assert found.is_for("/src/a.py")
    assert found.is_for("/src/a.pyi")
    assert not found.is_for("/src/a.pyx")
    assert "pyright" not in repr(found)


def test_layers_complete_each_other() -> None:
    lower, upper = server(extensions=[".py"]), {"lsp": {"pyright": {"env": {"A": "1"}}}}
    (found,) = edit_programs.configured_programs([document(lower), document(upper)]).servers
    assert found.environment == {"A": "1"}
    assert found.extensions == (".py",)


def test_switched_off_incomplete_or_for_every_file_is_not_started() -> None:
    known = document(server(extensions=[".py"]))
    off: tuple[JsonObject, ...] = (
        {"lsp": False},
        {"lsp": {"pyright": {"disabled": True}}},
        {"lsp": {"pyright": {"command": []}}},
        {"lsp": {"pyright": {"extensions": []}}},
    )
    for above in off:
        assert edit_programs.configured_programs([known, document(above)]).servers == ()
    assert edit_programs.configured_programs([document(server())]).servers == ()
    assert edit_programs.configured_programs([document({"lsp": True})]).servers == ()


def test_only_what_is_trusted_is_started() -> None:
    projects = document(server(extensions=[".py"]), trust="project")
    assert edit_programs.configured_programs([projects]).servers == ()


def test_a_wrong_form_is_told_and_loses_nothing_else() -> None:
    read = document({"lsp": {"pyright": {"command": "pyright"}}, "shell": "/bin/sh"})
    assert edit_programs.configured_programs([read]).servers == ()
    assert "lsp" in read.problems[0].message
    assert read.shell == "/bin/sh"
