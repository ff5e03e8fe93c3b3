"""What plugins say of agents, providers and models: documents that lie below all configuration.

A plugin was chosen by whoever runs the program, so that its word counts as the user's own: a
project can no more redirect a plugin's provider than one of the user's. Documents of several
plugins lie over each other in the order of their names, whoever was added first. Whether what a
document says makes sense is told to the plugin at once, by `agent` and `catalog`.
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
    """`changed` is called when one came or went."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._documents: list[Document] = []

    @contextmanager
    def register(self, document: Document) -> Generator[None]:
        """Say it while the scope is open."""
        self._documents.append(document)
        self._changed()
        try:
            yield
        finally:
            self._documents = [each for each in self._documents if each is not document]
            self._changed()

    def list(self) -> tuple[Document, ...]:
        """The lowest first."""
        return tuple(sorted(self._documents, key=lambda document: document.path))


def agent(plugin: str, name: str, options: JsonObject) -> Document:
    """What a plugin says of one agent, as `agents` of a configuration would. Raises ValueError."""
    if not name.strip():
        raise ValueError("an agent has a name")
    entry = _read(AgentEntry, f"agent {name!r}", options)
    if entry.model and config_document.parse_model(entry.model) is None:
        raise ValueError(f"agent {name!r}: a model is named provider/model, not {entry.model!r}")
    return _document(plugin, agents=((name, entry),))


def catalog(plugin: str, providers: JsonObject) -> Document:
    """What a plugin says of providers, as `providers` of a configuration would."""
    entries: dict[str, JsonObject] = {}
    for name, options in providers.items():
        if not name.strip():
            raise ValueError("a provider has a name")
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
