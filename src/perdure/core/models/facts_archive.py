"""The archive of model facts: one compressed part per provider, and an index.

It holds thousands of models, of which a Location uses a few dozen. Only the index and the
requested parts are decompressed. The whole archive is an ordinary gzip file of JSON lines. The
facts are interpreted in core.models.facts.

Invariant: an archive that opens is complete; any other bytes are refused.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from perdure.core import limits
from perdure.core.models.facts import KnownModel, KnownProvider
from perdure.schema import codec
from perdure.schema.value import Value

FORMAT: Final = 1
_GZIP: Final = 31  # window bits: gzip header and checksum


class ModelArchiveError(Exception):
    """The bytes are not a usable archive. The message says why."""


class Part(KnownProvider, kw_only=True):
    """A provider and the offset of its models after the index."""

    start: int
    length: int


class _Index(Value):
    format: int
    checksum: int
    providers: tuple[Part, ...]


class ModelArchive:
    """Reads an archive from bytes. Raises ModelArchiveError."""

    def __init__(self, data: bytes) -> None:
        index, self._parts = _opened(data)
        self._providers = {part.id: part for part in index.providers}

    @property
    def providers(self) -> Mapping[str, KnownProvider]:
        return self._providers

    def models(self, provider_id: str) -> dict[str, KnownModel]:
        """The models of a provider that is in the index."""
        part = self._providers[provider_id]
        data = self._parts[part.start : part.start + part.length]
        return codec.decode(dict[str, KnownModel], zlib.decompress(data, _GZIP))


def pack(published: bytes) -> bytes:
    """An archive of the models.dev document: one object with a provider under each key.

    Invalid providers and models are left out. Raises ModelArchiveError if nothing remains.
    """
    parts: list[Part] = []
    packed: list[bytes] = []
    start = 0
    for provider, models in _providers(published):
        data = _compressed(codec.encode(models) + b"\n")
        known = {name: getattr(provider, name) for name in KnownProvider.__struct_fields__}
        parts.append(Part(**known, start=start, length=len(data)))
        packed.append(data)
        start += len(data)
    if not parts:
        raise ModelArchiveError("it contains no provider")
    body = b"".join(packed)
    index = _Index(FORMAT, zlib.crc32(body), tuple(parts))
    return _compressed(codec.encode(index) + b"\n") + body


class _Published(KnownProvider, kw_only=True):
    models: dict[str, Raw]


def _providers(published: bytes) -> Iterator[tuple[KnownProvider, dict[str, KnownModel]]]:
    try:
        # Provider by provider: decoding all at once would need twenty times the memory.
        listed = codec.decode(dict[str, Raw], published)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelArchiveError(f"it is not an object of providers: {error}") from error
    for raw in list(listed.values())[: limits.MODEL_PROVIDERS_MAX]:
        provider = _sound(_Published, raw)
        if provider is None or not provider.id:
            continue
        named = list(provider.models.items())[: limits.MODELS_PER_PROVIDER_MAX]
        decoded = {name: _sound(KnownModel, model) for name, model in named}
        models = {name: model for name, model in decoded.items() if model is not None}
        urls = {model.provider.api for model in models.values() if model.provider}
        further = tuple(sorted(filter(None, urls)))
        yield msgspec.structs.replace(provider, further=further), models


def _sound(kind: type[codec.T], raw: Raw) -> codec.T | None:
    try:
        return codec.decode(kind, bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _opened(data: bytes) -> tuple[_Index, bytes]:
    inflate = zlib.decompressobj(_GZIP)
    try:
        text = inflate.decompress(data, limits.MODEL_INDEX_BYTES_MAX)
        index = codec.decode(_Index, text)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelArchiveError(f"its index cannot be read: {error}") from error
    if not inflate.eof or index.format != FORMAT:
        raise ModelArchiveError(f"it is not of format {FORMAT}")
    if zlib.crc32(inflate.unused_data) != index.checksum:
        raise ModelArchiveError("it is damaged")
    return index, inflate.unused_data


def _compressed(data: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    return deflate.compress(data) + deflate.flush()
