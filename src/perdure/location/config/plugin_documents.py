"""Configuration documents of plugins: agents, providers and models below all configuration files.

The user chose the plugin, so its documents are trusted as the user's own: a project cannot
redirect a plugin's provider. Documents of several plugins override each other in the order of
their names. The functions that make them raise ValueError for a plugin's mistakes.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from perdure.core.config_file.entries import AgentEntry, ProviderEntry
from perdure.core.settings import document as config_document
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.codec import JsonObject


class PluginDocuments:
    """The registered documents; `changed` is called when one is added or removed."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._documents: list[Document] = []

    @contextmanager
    def register(self, document: Document) -> Generator[None]:
        """Apply the document while the scope is open."""
        self._documents.append(document)
        self._changed()
        try:
            yield
        finally:
            self._documents = [each for each in self._documents if each is not document]
            self._changed()

    def list(self) -> tuple[Document, ...]:
        """The documents, the lowest precedence first."""
        return tuple(sorted(self._documents, key=lambda document: document.path))


def make_agent_document(plugin: str, name: str, options: JsonObject) -> Document:
    """The document of one agent, with the options of `agents` in a configuration file."""
    if not name.strip():
        raise ValueError("an agent needs a name")
    entry = _read(AgentEntry, f"agent {name!r}", options)
    if entry.model and config_document.parse_model(entry.model) is None:
        raise ValueError(f"agent {name!r}: a model is named provider/model, not {entry.model!r}")
    return _document(plugin, agents=((name, entry),))


def make_catalog_document(plugin: str, providers: JsonObject) -> Document:
    """The document of providers, with the options of `providers` in a configuration file."""
    entries: dict[str, JsonObject] = {}
    for name, options in providers.items():
        if not name.strip():
            raise ValueError("a provider needs a name")
        entry = _read(ProviderEntry, f"provider {name!r}", options)
        entries[name] = codec.to_json_value(entry)
    return _document(plugin, providers=entries)


def _document(
    plugin: str,
    *,
    agents: tuple[tuple[str, AgentEntry], ...] = (),
    providers: dict[str, JsonObject] | None = None,
) -> Document:
    return Document(
        path=f"plugin {plugin}",
        trust="user",
        plugin=True,
        agents=agents,
        providers=providers or {},
    )


def _read(kind: type[codec.T], what: str, options: JsonObject) -> codec.T:
    try:
        return codec.convert(kind, options)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from error
