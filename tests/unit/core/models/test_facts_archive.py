"""The archive of model facts: what goes in comes out, and nothing else is taken for one."""

import gzip

import pytest

from perdure.core import limits
from perdure.core.models import facts_archive
from perdure.core.models.facts import Limits
from perdure.core.models.facts_archive import ModelArchive, ModelArchiveError
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.support.inputs.decompression_bombs import gzip_bomb


def published(**providers: JsonValue) -> bytes:
    return codec.encode(providers)


def acme(**models: JsonValue) -> JsonObject:
    return {"id": "acme", "env": ["ACME_API_KEY"], "npm": "@ai-sdk/openai", "models": models}


def test_an_archive_gives_back_what_was_published() -> None:
    archive = ModelArchive(
        facts_archive.pack(
            published(
                acme=acme(
                    one={"name": "One", "limit": {"context": 1e6, "output": 5}, "unused": "field"},
                    two={"provider": {"api": "https://two.example/v1"}},
                ),
                other={"id": "other", "models": {}},
            )
        )
    )
    assert list(archive.providers) == ["acme", "other"]
    assert archive.providers["acme"].further == ("https://two.example/v1",)
    one = archive.models("acme")["one"]
    assert (one.name, one.limit) == ("One", Limits(context=1e6, output=5))
    assert archive.models("other") == {}


def test_the_same_facts_make_the_same_bytes_and_an_ordinary_gzip_file() -> None:
    data = facts_archive.pack(published(acme=acme(one={"unused": "field"})))
    assert data == facts_archive.pack(published(acme=acme(one={})))
    index, models = gzip.decompress(data).splitlines()
    assert codec.decode_any(index)["providers"][0]["id"] == "acme"
    assert models == b'{"one":{}}'


def test_what_makes_no_sense_is_left_out_alone() -> None:
    archive = ModelArchive(
        facts_archive.pack(
            published(
                acme=acme(
                    good={"name": "Good"},
                    bad={"limit": "large"},
                    worse=7,
                    deep=nested(5_000),
                ),
                nameless={"models": {}},
                empty={"id": "", "models": {}},
                modelless={"id": "modelless"},
                text="no provider",
            )
        )
    )
    assert list(archive.providers) == ["acme"]
    assert list(archive.models("acme")) == ["good", "deep"]


def nested(depth: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(depth // 10):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"acme": {"id": "acme"',
        b"<!doctype html>",
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        published(text="no provider"),
    ],
)
def test_a_publication_without_any_provider_is_refused(data: bytes) -> None:
    with pytest.raises(ModelArchiveError):
        facts_archive.pack(data)


def test_an_archive_that_is_cut_or_changed_anywhere_is_refused() -> None:
    data = facts_archive.pack(published(acme=acme(one={"name": "One"}, two={"name": "Two"})))
    ModelArchive(data)
    for at in range(len(data)):
        with pytest.raises(ModelArchiveError):
            ModelArchive(data[:at])
        changed = bytearray(data)
        changed[at] ^= 0xFF
        if _header(at):
            continue
        with pytest.raises(ModelArchiveError):
            ModelArchive(bytes(changed))


def _header(at: int) -> bool:
    """Time stamp and system of the gzip header mean nothing and are not checked."""
    return 4 <= at < 10


@pytest.mark.parametrize(
    "index",
    [
        b"null",
        b"not json",
        b'{"format":1}',
        b'{"format":2,"checksum":0,"providers":[]}',
        b" " * (limits.MODEL_INDEX_BYTES_MAX + 1) + b'{"format":1,"checksum":0,"providers":[]}',
    ],
)
def test_a_compressed_file_with_another_index_is_refused(index: bytes) -> None:
    with pytest.raises(ModelArchiveError):
        ModelArchive(gzip.compress(index))


def test_a_bomb_is_not_inflated() -> None:
    with pytest.raises(ModelArchiveError):
        ModelArchive(gzip_bomb(256, b" "))
