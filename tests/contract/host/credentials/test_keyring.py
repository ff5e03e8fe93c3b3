"""Credentials in a keyring: the file tells of them, the keyring holds what is secret.

The package is optional. Its place is taken by a module of the same name that keeps a file.
"""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.host.credentials import keyring
from perdure.host.credentials.file import FileCredentials
from perdure.host.credentials.keyring import KeyringCredentials
from perdure.ports import CredentialStoreError
from tests.contract.host.stored import CANARY, key, login

PACKAGE: Final = """
import json, pathlib
from keyring import errors
PLACE = pathlib.Path(__file__).parent / "held.json"

def _held():
    if (PLACE.parent / "locked").exists():
        raise errors.KeyringError("locked: " + PLACE.read_text())
    return json.loads(PLACE.read_text()) if PLACE.exists() else {}

def get_password(service, name):
    return _held().get(f"{service}/{name}")

def set_password(service, name, value):
    PLACE.write_text(json.dumps({**_held(), f"{service}/{name}": value}))

def delete_password(service, name):
    held = _held()
    if held.pop(f"{service}/{name}", None) is None:
        raise errors.KeyringError("no such password")
    PLACE.write_text(json.dumps(held))
"""


@pytest.fixture
def package(tmp_path: Path) -> Generator[Path]:
    folder = tmp_path / "packages" / "keyring"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (folder / "errors.py").write_text("class KeyringError(Exception): pass\n", encoding="utf-8")
    sys.path.insert(0, str(folder.parent))
    yield folder
    sys.path.remove(str(folder.parent))
    for name in ("keyring", "keyring.errors"):
        sys.modules.pop(name, None)


@pytest.fixture
def store(tmp_path: Path) -> FileCredentials:
    directory = tmp_path / "data"
    directory.mkdir()
    return keyring.open_store(str(directory), {"PERDURE_KEYRING": "1"})


def held(package: Path) -> str:
    return (package / "held.json").read_text(encoding="utf-8")


def test_a_keyring_is_used_only_when_asked_for(tmp_path: Path) -> None:
    for variables in ({}, {"PERDURE_KEYRING": ""}, {"PERDURE_KEYRING": "0"}):
        opened = keyring.open_store(str(tmp_path), variables)
        assert type(opened) is FileCredentials
    assert "keyring" not in sys.modules


def test_secrets_lie_in_the_keyring_and_not_in_the_file(
    store: FileCredentials, package: Path
) -> None:
    store.put(key("one"), instead_of=None)
    store.put(login("two"), instead_of=None)
    assert KeyringCredentials(str(Path(store.path).parent)).look() == {
        "one": key("one"),
        "two": login("two"),
    }
    assert CANARY not in Path(store.path).read_text(encoding="utf-8")
    assert CANARY in held(package)


def test_what_is_renewed_or_removed_is_so_in_the_keyring_too(
    store: FileCredentials, package: Path
) -> None:
    store.put(login(access="first"), instead_of=None)
    assert store.put(login(access="second"), instead_of=login(access="first"))
    assert "second" in held(package)
    assert "first" not in held(package)
    assert store.remove("cred_fake")
    assert "second" not in held(package)
    assert store.look() == {}


def test_what_was_stored_before_a_keyring_was_asked_for_moves_there(
    store: FileCredentials, package: Path
) -> None:
    plain = FileCredentials(str(Path(store.path).parent))
    plain.put(key("one"), instead_of=None)
    assert store.look() == {"one": key("one")}
    assert store.put(replace(key("one"), label="work"), instead_of=key("one"))
    assert CANARY not in Path(store.path).read_text(encoding="utf-8")
    assert CANARY in held(package)
    with pytest.raises(CredentialStoreError, match="PERDURE_KEYRING=1"):
        plain.look()


def test_a_locked_or_emptied_keyring_is_said_to_be_without_a_word_of_it(
    store: FileCredentials, package: Path
) -> None:
    store.put(key("one"), instead_of=None)
    (package / "locked").touch()
    again = KeyringCredentials(str(Path(store.path).parent))
    with pytest.raises(CredentialStoreError, match="Unlock it") as raised:
        again.look()
    assert CANARY not in repr(raised.value)
    assert raised.value.__cause__ is None
    with pytest.raises(CredentialStoreError):
        again.put(key("two"), instead_of=None)
    (package / "locked").unlink()
    assert again.look() == {"one": key("one")}
    (package / "held.json").unlink()
    with pytest.raises(CredentialStoreError, match="log in again"):
        KeyringCredentials(str(Path(store.path).parent)).look()


def test_without_the_package_the_remedy_is_told(
    store: FileCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None stands for a package that cannot be imported, whether or not it is installed here.
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert store.look() == {}
    with pytest.raises(CredentialStoreError, match=r"perdure\[keyring\]"):
        store.put(key("one"), instead_of=None)
    assert not Path(store.path).exists()
