"""`perdure trust`, and the question that `run` and `serve` ask."""

import json
import os
import signal
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.contract.cli.command import (
    MODEL,
    PATIENCE_SECONDS,
    Installation,
    shown_until,
    terminal,
)
from tests.support.fork_server import Child, shared

FORMATTER = {"formatter": {"tidy": {"command": ["tidy", "\u001b[2J"], "extensions": [".html"]}}}


@pytest.fixture(autouse=True)
def no_trust_ahead(installation: Installation) -> None:
    del installation.variables["PERDURE_TRUSTED"]


def configure(installation: Installation, value: object = FORMATTER) -> None:
    (installation.project / "opencode.json").write_text(json.dumps(value), encoding="utf-8")


@contextmanager
def at_a_terminal(installation: Installation, *arguments: str) -> Generator[tuple[Child, int]]:
    with terminal() as (screen, theirs):
        child = shared().start(
            arguments,
            variables=installation.variables,
            directory=installation.project,
            files=(theirs, theirs, theirs),
        )
        try:
            yield child, screen
        finally:
            child.end()


def test_trust_says_what_it_allows_and_can_be_taken_back(installation: Installation) -> None:
    nothing = installation.perdure("trust")
    assert "nothing to trust" in nothing.stdout
    configure(installation)
    granted = installation.perdure("trust", str(installation.project))
    assert granted.returncode == 0, granted.stderr
    assert "run tidy '\\x1b[2J' (formatter.tidy)" in granted.stdout
    assert "opencode.json" in installation.perdure("trust", "--list").stdout
    assert "nothing to trust" in installation.perdure("trust").stdout
    assert "no longer trusted" in installation.perdure("trust", "--revoke").stdout
    assert installation.perdure("trust", "--list").stdout == ""


def test_a_directory_that_is_none_and_a_damaged_record_are_refused(
    installation: Installation,
) -> None:
    nowhere = installation.perdure("trust", "nowhere")
    assert nowhere.returncode == 1
    assert "not a directory" in nowhere.stderr
    configure(installation)
    installation.perdure("trust")
    (installation.data_dir / "trusted.json").write_text("{", encoding="utf-8")
    for arguments in (("trust",), ("trust", "--list"), ("run", "--trust", *MODEL, "hello")):
        said = installation.perdure(*arguments)
        assert said.returncode == 1
        assert "is damaged" in said.stderr
        assert "Traceback" not in said.stderr


def test_the_doctor_says_what_is_off_and_calls_nothing_broken(installation: Installation) -> None:
    configure(installation)
    report = installation.perdure("doctor")
    assert report.returncode == 0, report.stdout
    assert "not trusted" in report.stdout
    assert "\x1b" not in report.stdout


def test_a_run_without_a_terminal_works_and_grants_only_what_it_is_told_to(
    installation: Installation,
) -> None:
    configure(installation)
    assert installation.perdure("run", *MODEL, "hello").returncode == 0
    assert installation.perdure("trust", "--list").stdout == ""
    assert installation.perdure("run", "--trust", *MODEL, "hello").returncode == 0
    assert "opencode.json" in installation.perdure("trust", "--list").stdout


def test_a_person_is_asked_once_and_again_after_a_change(installation: Installation) -> None:
    configure(installation)
    with at_a_terminal(installation, "run", *MODEL, "say hello") as (process, screen):
        shown = shown_until(screen, "[N]o: ")
        assert "run tidy" in shown
        assert "\x1b" not in shown
        os.write(screen, b"n\n")
        shown_until(screen, "stay off")
        shown_until(screen, "session ")
        process.signal(signal.SIGTERM)
    with at_a_terminal(installation, "run", *MODEL, "say hello") as (_, screen):
        assert "trust it?" not in shown_until(screen, "session ")
    configure(installation, {**FORMATTER, "share": "auto"})
    with at_a_terminal(installation, "run", *MODEL, "say hello") as (_, screen):
        shown_until(screen, "[N]o: ")
        os.write(screen, b"y\n")
        shown_until(screen, "session ")
    assert "opencode.json" in installation.perdure("trust", "--list").stdout


def test_a_server_asks_before_it_listens(installation: Installation) -> None:
    configure(installation)
    with at_a_terminal(installation, "serve", "--port", "0") as (_, screen):
        assert "listening" not in shown_until(screen, "[N]o: ")
        os.write(screen, b"yes\n")
        shown_until(screen, "listening on")
    assert "opencode.json" in installation.perdure("trust", "--list").stdout


def test_a_client_reads_what_is_off(installation: Installation) -> None:
    configure(installation)
    with installation.server("--no-auth") as url:
        seen = _trust_of(url)
        assert seen["trusted"] is False
        assert seen["off"][0]["kind"] == "program"
        assert seen["off"][0]["message"].startswith("run tidy")
        installation.perdure("trust")
        assert _trust_of(url) == {"trusted": True, "off": []}


def _trust_of(url: str) -> dict[str, list[dict[str, str]]]:
    with urllib.request.urlopen(f"{url}/api/location/trust", timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)["data"]
