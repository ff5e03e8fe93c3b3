"""`perdure serve`: closed by default, open by choice, and gone without a trace of noise."""

import base64
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.contract.cli.command import PATIENCE_SECONDS, Installation, address_of


def status_of(url: str, headers: Mapping[str, str] | None = None) -> int:
    request = urllib.request.Request(f"{url}/api/session", headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            json.load(answer)
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_a_server_without_a_configured_password_makes_one_that_only_the_user_can_read(
    installation: Installation,
) -> None:
    with installation.server() as url:
        kept = installation.data_dir / "server-password"
        password = kept.read_text(encoding="utf-8").strip()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert len(password) >= 43
        assert status_of(url) == 401
        assert status_of(url, basic("opencode", "wrong")) == 401
        assert status_of(url, basic("opencode", password)) == 200
    with installation.server() as url:
        assert status_of(url, basic("opencode", password)) == 200


def test_a_configured_user_and_password_are_asked_for(installation: Installation) -> None:
    installation.variables |= {
        "OPENCODE_SERVER_PASSWORD": "open sesame",
        "OPENCODE_SERVER_USERNAME": "ali",
    }
    with installation.server() as url:
        assert status_of(url, basic("opencode", "open sesame")) == 401
        assert status_of(url, basic("ali", "open sesame")) == 200
        assert installation.perdure("sessions", "--attach", url).returncode == 0
        wrong = installation.perdure(
            "sessions", "--attach", url, variables={"OPENCODE_SERVER_PASSWORD": "shut"}
        )
        assert wrong.returncode == 1
        assert "OPENCODE_SERVER_PASSWORD" in wrong.stderr
    assert not (installation.data_dir / "server-password").exists()


def test_no_auth_opens_the_server_to_this_machine_only(installation: Installation) -> None:
    with installation.server("--no-auth") as url:
        assert status_of(url) == 200
    refused = installation.perdure("serve", "--no-auth", "--hostname", "0.0.0.0", "--port", "0")
    assert refused.returncode == 1
    assert "--no-auth is refused" in refused.stderr


def test_the_start_tells_the_address_the_data_and_where_the_password_is(
    installation: Installation,
) -> None:
    with installation.started("serve", "--port", "0") as process:
        assert process.stdout is not None
        address_of(process)
        assert str(installation.data_dir) in process.stdout.readline()
        line = process.stdout.readline()
    password = (installation.data_dir / "server-password").read_text(encoding="utf-8").strip()
    assert "server-password" in line
    assert password not in line


def test_origins_and_hosts_are_answered_when_they_are_listed(installation: Installation) -> None:
    options = ("--cors", "http://app.example", "--allow-host", "box.example", "--no-auth")
    with installation.server(*options) as url:
        assert status_of(url, {"origin": "http://app.example"}) == 200
        assert status_of(url, {"origin": "http://other.example"}) == 403
        assert status_of(url, {"host": "box.example"}) == 200
        assert status_of(url, {"host": "evil.example"}) == 403


def test_the_origins_of_opencode_have_a_name(installation: Installation) -> None:
    with installation.server("--cors", "opencode", "--no-auth") as url:
        for origin in ("oc://renderer", "tauri://localhost", "https://app.opencode.ai"):
            assert status_of(url, {"origin": origin}) == 200
        assert status_of(url, {"origin": "http://localhost:3000"}) == 200
        assert status_of(url, {"origin": "http://localhost"}) == 200
        for origin in ("http://localhost.example:3000", "https://localhost:3000", "null"):
            assert status_of(url, {"origin": origin}) == 403


def test_a_refused_origin_is_told_the_flag(installation: Installation) -> None:
    with installation.server("--no-auth") as url:
        headers = {"origin": "http://app.example"}
        request = urllib.request.Request(f"{url}/api/health", headers=headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=PATIENCE_SECONDS)
        with refused.value as answer:
            assert b"--cors http://app.example" in answer.read()


@pytest.mark.parametrize("by", ["flag", "name"])
def test_a_server_is_started_as_opencode_serve_is(
    by: str, installation: Installation, tmp_path: Path
) -> None:
    command = Path(sys.executable).parent / "perdure"
    options = ["--hostname=127.0.0.1", "--port=0", "--log-level=WARN"]
    if by == "name":
        command = tmp_path / "opencode"
        command.symlink_to(Path(sys.executable).parent / "perdure")
    else:
        options.append("--opencode")
    process = subprocess.Popen(
        [command, "serve", *options],
        env=installation.variables,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            line = next(line for line in lines if line.startswith("opencode server listening on "))
            url = line.split()[-1]
            assert status_of(url) == 200
            assert status_of(url, {"host": "evil.example"}) == 403
            assert status_of(url, {"origin": "http://evil.example"}) == 403
        finally:
            process.terminate()


def test_as_opencode_serve_a_password_of_the_environment_counts(
    installation: Installation,
) -> None:
    installation.variables["OPENCODE_SERVER_PASSWORD"] = "shut"
    with installation.server("--opencode") as url:
        assert status_of(url) == 401


def test_a_port_that_is_taken_is_explained(installation: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = installation.perdure("serve", "--port", port)
    assert ran.returncode == 1
    assert port in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "arguments", [("--port", "x"), ("--port", "70000"), ("--nonsense",), ("--cors", "*")]
)
def test_options_that_make_no_sense_are_refused(
    installation: Installation, arguments: tuple[str, ...]
) -> None:
    ran = installation.perdure("serve", *arguments)
    assert ran.returncode == 2
    assert "usage" in ran.stderr
    assert not installation.data_dir.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_cleanly(
    installation: Installation, number: signal.Signals
) -> None:
    with installation.started("serve", "--port", "0", "--no-auth") as process:
        url = address_of(process)
        assert status_of(url) == 200
        process.send_signal(number)
        _, noise = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in noise
    assert not os.listdir(installation.data_dir / "processes")


def test_who_is_told_the_address_may_stop_the_server_at_once(installation: Installation) -> None:
    with installation.started("serve", "--port", "0", "--no-auth") as process:
        address_of(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_password_file_that_others_can_read_is_refused(installation: Installation) -> None:
    with installation.server():
        pass
    (installation.data_dir / "server-password").chmod(0o644)
    ran = installation.perdure("serve", "--port", "0")
    assert ran.returncode == 1
    assert "read by others" in ran.stderr


def test_servers_that_start_together_agree_on_one_password(installation: Installation) -> None:
    with (
        installation.started("serve", "--port", "0") as one,
        installation.started("serve", "--port", "0") as two,
    ):
        addresses = [address_of(one), address_of(two)]
        password = (installation.data_dir / "server-password").read_text(encoding="utf-8").strip()
        assert [status_of(url, basic("opencode", password)) for url in addresses] == [200, 200]
    kept = [name for name in os.listdir(installation.data_dir) if name.startswith("server-")]
    assert kept == ["server-password"]


def test_the_server_does_not_load_the_client(installation: Installation) -> None:
    heavy = "{'httpx2', 'dataclasses'} & set(sys.modules)"
    program = f"import perdure.cli.commands.serve, sys; print({heavy})"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=installation.variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert ran.stdout.strip() == "set()"


def test_a_log_for_machines_is_one_object_a_line(installation: Installation) -> None:
    (installation.project / "opencode.json").write_text("{ broken")
    arguments = ("serve", "--port", "0", "--no-auth", "--log-format", "json")
    with installation.started(*arguments, "--log-level", "debug") as process:
        url = address_of(process)
        with urllib.request.urlopen(f"{url}/api/agent", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in errors.splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert any("opencode.json" in line["message"] for line in lines)


def test_telemetry_that_is_asked_for_and_not_there_is_only_a_warning(
    installation: Installation,
) -> None:
    hidden = installation.project.parent / "hidden" / "opentelemetry"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not installed')")
    installation.variables["PYTHONPATH"] += f":{hidden.parent}"
    installation.variables["PYTHONPATH"] = ":".join(
        reversed(installation.variables["PYTHONPATH"].split(":"))
    )
    installation.variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
    with installation.started("serve", "--port", "0", "--no-auth") as process:
        assert status_of(address_of(process)) == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert "install perdure[telemetry]" in errors
