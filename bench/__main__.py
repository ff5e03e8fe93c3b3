"""python -m bench compare|run|beside|report|inside|list: see README.md."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import side_by_side
from .client import HttpError
from .install import FOLDER, InstallError, install_both
from .report import table
from .scenarios import SCENARIOS, Bench
from .server import Server, Target
from .side_by_side import ROUNDS
from .v1_scenarios import V1_SCENARIOS

SCENARIOS.update(V1_SCENARIOS)

HERE = Path(__file__).resolve().parent
COMPARED = ("opencode", "perdure")
# Errors that a server under test can cause. A failed scenario must not end the others.
FAILURES = (HttpError, OSError, RuntimeError, LookupError, TypeError, ValueError)


def main() -> int:
    options = parse_arguments()
    match options.command:
        case "compare":
            return compare(options)
        case "run":
            run(options)
        case "inside":
            # Imported here because the other commands need only the standard library.
            importlib.import_module("bench.inside_store")
            importlib.import_module("bench.inside_tools")
            importlib.import_module("bench.inside_snapshots")
            importlib.import_module("bench.inside_subagents")
            importlib.import_module("bench.inside_hostile")
            importlib.import_module("bench.inside_sandbox")
            asyncio.run(importlib.import_module("bench.inside").run(options.names))
        case "beside":
            beside(options)
        case "report":
            print(table(options.results, options.baseline))
        case _:
            for name, function in SCENARIOS.items():
                print(f"{name:16} {function.__doc__}")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Install both servers, run them in alternation and print the table."""
    try:
        install_both()
    except InstallError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    options.target = [str(HERE / "targets" / f"{name}.json") for name in COMPARED]
    run(options)
    print(table([options.out], COMPARED[0]))
    return 0


def run(options: argparse.Namespace) -> None:
    targets = [Target.load(path) for path in options.target]
    names = options.scenarios.split(",") if options.scenarios else list(SCENARIOS)
    out = Path(options.out)
    rows = json.loads(out.read_text())["rows"] if out.exists() and options.append else []
    machine = {
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    with fake_model(options.llm_port or free_port()) as llm:
        for name in names:
            for repeat in range(options.repeat):
                # Alternating, so that a slowdown of the machine affects both.
                for target in targets if repeat % 2 == 0 else targets[::-1]:
                    server = make_server(options, name, target, llm)
                    rows.append(measure(options, name, repeat, server))
                    out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))


def beside(options: argparse.Namespace) -> None:
    """Run the targets at the same time and compare their CPU, round after round."""
    names = options.cases.split(",") if options.cases else list(ROUNDS)
    targets = [Target.load(path) for path in options.target]
    with fake_model(free_port()) as llm, tempfile.TemporaryDirectory() as folder:
        servers = [
            Server(target, Path(folder) / str(number), free_port(), llm)
            for number, target in enumerate(targets)
        ]
        asyncio.run(side_by_side.measure(servers, names, options.rounds, options.turns))


def make_server(options: argparse.Namespace, name: str, target: Target, llm: str) -> Server:
    work = Path(options.work) / f"{target.name}-{name}"
    return Server(target, work, options.port or free_port(), llm)


def measure(options: argparse.Namespace, name: str, repeat: int, server: Server) -> dict:
    server.reset()
    began, before = time.monotonic(), load()
    print(f"== {name} #{repeat + 1} {server.target.name} (load {before})", flush=True)
    try:
        metrics, error = asyncio.run(one(name, server, options.scale)), None
    except FAILURES as failure:
        metrics, error = {}, f"{type(failure).__name__}: {failure}"
        print(f"   FAILED {error}", flush=True)
    for key, value in metrics.items():
        print(f"   {key:34} {value}", flush=True)
    return {
        "scenario": name,
        "target": server.target.name,
        "repeat": repeat,
        "metrics": metrics,
        "error": error,
        "seconds": round(time.monotonic() - began, 1),
        "load": [before, load()],
        "scale": options.scale,
    }


async def one(name: str, server: Server, scale: float) -> dict[str, object]:
    bench = Bench(server, server.names["llm"], scale, lambda text: print(text, flush=True))
    try:
        return await SCENARIOS[name](bench)
    finally:
        bench.close()
        server.stop()


@contextlib.contextmanager
def fake_model(port: int):
    """Start the fake model in its own process and yield its base URL."""
    command = [sys.executable, "-m", f"{HERE.name}.fakellm", "--port", str(port)]
    process = subprocess.Popen(command, cwd=HERE.parent, start_new_session=True)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(5)


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("the fake model did not start")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def load() -> float:
    return round(os.getloadavg()[0], 2)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    comparer = commands.add_parser("compare", help="install both servers, run, print the table")
    add_run_options(comparer, repeat=3, out=str(FOLDER / "results.json"))
    runner = commands.add_parser("run", help="run scenarios against one or more targets")
    runner.add_argument(
        "--target",
        action="append",
        required=True,
        help="target JSON file; may be repeated to compare",
    )
    add_run_options(runner, repeat=1, out="results.json")
    besider = commands.add_parser("beside", help="run targets at once and compare their CPU")
    besider.add_argument("--target", action="append", required=True, help="target JSON file")
    besider.add_argument("--cases", help=f"comma-separated (default: all: {','.join(ROUNDS)})")
    besider.add_argument("--rounds", type=int, default=20)
    besider.add_argument("--turns", type=int, default=32, help="turns in each round")
    reporter = commands.add_parser("report", help="print tables of medians and factors")
    reporter.add_argument("results", nargs="+")
    reporter.add_argument("--baseline")
    insider = commands.add_parser("inside", help="measure single parts of Perdure in this process")
    insider.add_argument(
        "names", nargs="*", help="names of parts (default: all of bench/inside*.py)"
    )
    commands.add_parser("list", help="list the scenarios")
    return parser.parse_args()


def add_run_options(parser: argparse.ArgumentParser, *, repeat: int, out: str) -> None:
    names = ",".join(SCENARIOS)
    parser.add_argument("--scenarios", help=f"comma-separated (default: all: {names})")
    parser.add_argument("--repeat", type=int, default=repeat)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiply counts; 0.1 is a quick run"
    )
    parser.add_argument("--out", default=out)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--work", default=str(Path(tempfile.gettempdir()) / "perdure-bench"))
    parser.add_argument(
        "--port", type=int, default=0, help="port of the server (default: a free one)"
    )
    parser.add_argument(
        "--llm-port", type=int, default=0, help="port of the model (default: a free one)"
    )


if __name__ == "__main__":
    sys.exit(main())
