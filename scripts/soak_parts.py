"""The parts of a soak: one for each test of the harness that has a figure to reach.

Rows are those of the table in `docs/figures.md`. A part names the tests or the measurement of
`bench` that it runs, the variables that make them long, and the wanted figures. `lacks` says what a
part covers less than its row asks for; it is printed.

Invariant: every row has a part, or a reason why it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ROWS: Final = range(1, 26)
SECONDS: Final = "seconds"
"""The figure that every part has: its duration."""


@dataclass(frozen=True, slots=True)
class Wanted:
    figure: str
    amount: float
    at_most: bool = False

    def is_reached(self, amount: float) -> bool:
        return amount <= self.amount if self.at_most else amount >= self.amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    row: int
    name: str
    tests: tuple[str, ...] = ()
    """Arguments of pytest."""
    bench: tuple[str, ...] = ()
    """Arguments of `python -m bench`, for a part that measures."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    wanted: tuple[Wanted, ...] = ()
    """The figures that the row asks for; none if the row asks for everything that exists."""
    lacks: str = ""
    alone: bool = False
    """Whether the part uses the whole machine, so that it runs without parallel workers."""


def _scenario(name: str) -> tuple[str, ...]:
    target = "bench/targets/perdure.json"
    return ("run", "--target", target, "--scenarios", name, "--out", "/dev/null")


_DECODERS: Final = ("Anthropic", "Bedrock", "Gemini", "OpenAI Chat", "OpenAI Responses")

PARTS: Final = (
    Part(
        row=1,
        name="crash points",
        tests=("tests/crash", "--ignore", "tests/crash/test_double_crashes.py"),
        wanted=(Wanted("crash points", 400),),
        lacks="SQLite only",
    ),
    Part(
        row=2,
        name="double crash",
        tests=("tests/crash/test_double_crashes.py",),
        variables={"PERDURE_PAIRS": "2000"},
        wanted=(Wanted("double crashes", 2_000),),
    ),
    Part(
        row=3,
        name="power loss",
        tests=("tests/power/test_images.py",),
        variables={"PERDURE_IMAGES": "10000"},
        wanted=(Wanted("power-loss images", 10_000),),
    ),
    Part(
        row=4,
        name="failing disk, every action",
        tests=("tests/power/test_faults.py",),
    ),
    Part(
        row=5,
        name="full disk",
        tests=("tests/power/test_full_disk.py",),
        variables={"PERDURE_FILLS": "100"},
        wanted=(Wanted("times a disk was full", 1),),
    ),
    Part(
        row=6,
        name="provider faults, every byte",
        tests=("tests/provider_faults/test_byte_sweep.py", "tests/contract/llm", "-k", "byte"),
        variables={"PERDURE_EVERY": "1"},
        wanted=(
            Wanted("faults of a provider", 5_000),
            *(Wanted(f"byte offsets, {name}", 5_000) for name in _DECODERS),
        ),
        lacks="the whole runtime meets OpenAI Chat only, the other four their decoders",
    ),
    Part(
        row=7,
        name="refusals",
        tests=(
            "tests/provider_faults/test_status_sweep.py",
            "tests/acceptance/turn/test_failures.py",
        ),
        wanted=(Wanted("refusals of a provider", 14 * 6),),
    ),
    Part(
        row=8,
        name="silence",
        tests=(
            "tests/provider_faults",
            "tests/acceptance/turn/test_provider_limits.py",
            "-k",
            "silen",
        ),
        variables={"PERDURE_EVERY": "1"},
        wanted=(Wanted("silences of a provider", 5),),
    ),
    Part(
        row=9,
        name="slow readers",
        bench=_scenario("stalled_reader"),
        wanted=(Wanted("slower_by_ratio", 0.2, at_most=True),),
        lacks="one reader that takes nothing, not 100 slow ones",
        alone=True,
    ),
    Part(
        row=10,
        name="reconnect storm",
        tests=("tests/acceptance/clients/test_reconnects.py",),
        variables={"PERDURE_STORM_SECONDS": "600"},
        wanted=(Wanted("readers of one session", 1_000), Wanted("seconds of cuts", 600)),
        lacks="no proxy that buffers",
        alone=True,
    ),
    Part(
        row=11,
        name="10,000 sessions, 1,000,000 events",
        bench=("inside", "large"),
        wanted=(
            Wanted("list page p95 ms", 20, at_most=True),
            Wanted("first byte of 50,000 events ms", 150, at_most=True),
        ),
        alone=True,
    ),
    Part(
        row=12,
        name="active sessions",
        bench=_scenario("concurrency"),
        wanted=(Wanted("w128_turns_per_s", 300),),
        lacks="128 sessions at once, not 1,000",
        alone=True,
    ),
    Part(
        row=13,
        name="many processes",
        tests=("tests/many_processes", "tests/acceptance/processes/test_runs_at_once.py"),
        variables={
            "PERDURE_PROCESSES": "16",
            "PERDURE_SECONDS": "150",
            "PERDURE_PAUSE_SECONDS": "0",
            "PERDURE_STOP_SECONDS": "120",
            "PERDURE_ROUNDS": "10",
        },
        wanted=(
            Wanted("processes on one database", 16),
            Wanted("stops of processes", 60),
            Wanted("runs of the command line", 160),
            Wanted("prompts to many processes", 16_000),
            Wanted("processes killed", 75),
        ),
        lacks="SQLite only",
        alone=True,
    ),
    Part(
        row=14,
        name="clocks",
        tests=(
            "tests/contract/runtime/drain/test_clock_jumps.py",
            "tests/contract/host/test_ids.py",
        ),
        variables={"PERDURE_JUMPS": "2000"},
        wanted=(Wanted("clock jumps", 7),),
    ),
    Part(
        row=15,
        name="state machine",
        tests=("tests/state_machine",),
        variables={"PERDURE_EXAMPLES": "10000", "PERDURE_STEPS": "50"},
        wanted=(Wanted("state machine histories", 100_000),),
    ),
    Part(
        row=16,
        name="simulation",
        tests=("tests/simulation/test_seeds.py",),
        variables={"PERDURE_SEEDS": "10000", "PERDURE_STEPS": "200"},
        wanted=(Wanted("simulated seeds", 10_000),),
    ),
    Part(
        row=17,
        name="lowering",
        tests=("tests/contract/llm/test_drawn_histories.py",),
        variables={"PERDURE_EXAMPLES": "200000"},
        wanted=(Wanted("drawn histories", 1_000_000),),
    ),
    Part(
        row=18,
        name="prefix, 20 turns",
        tests=("tests/acceptance/turn/test_prefix.py",),
        variables={"PERDURE_TURNS": "20"},
        wanted=(Wanted("requests that begin with the one before", 39 * len(_DECODERS)),),
    ),
    Part(
        row=18,
        name="prefix, 200 turns",
        bench=_scenario("prefix"),
        wanted=(
            Wanted("mean_prefix_percent", 90),
            Wanted("broken_prefixes", 0, at_most=True),
        ),
        alone=True,
    ),
    Part(
        row=19,
        name="compaction",
        tests=("tests/contract/runtime/compaction/test_torture.py",),
        variables={"PERDURE_SESSIONS": "420"},
        wanted=(Wanted("compacted sessions", 500),),
    ),
    Part(
        row=20,
        name="memory",
        bench=_scenario("memory"),
        lacks="200 turns, not 24 hours",
        alone=True,
    ),
    Part(
        row=21,
        name="shell",
        tests=("tests/contract/tools/shell/test_shell_torture.py",),
        variables={"PERDURE_FLOOD_BYTES": str(2**30)},
        wanted=(Wanted("commands that misbehave", 7), Wanted("bytes of the largest output", 2**30)),
        alone=True,
    ),
    Part(
        row=22,
        name="upgrade museum",
        tests=("tests/museum",),
        wanted=(Wanted("museum databases", 5),),
    ),
    Part(
        row=23,
        name="fuzz, requests",
        tests=("tests/contract/server/test_schemathesis.py",),
        variables={"PERDURE_EXAMPLES": "50"},
        wanted=(Wanted(SECONDS, 1_800),),
    ),
    Part(
        row=23,
        name="fuzz, everything that is parsed",
        tests=("tests/unit", "-k", "hypothesis"),
        variables={"PERDURE_EXAMPLES": "5000"},
        wanted=(Wanted(SECONDS, 1_800),),
    ),
    Part(
        row=23,
        name="commands against real shells",
        tests=(
            "tests/contract/tools/shell/test_literal_shells.py",
            "tests/contract/tools/shell/test_harmless_programs.py",
        ),
        variables={"PERDURE_TEXTS": "1000000"},
        wanted=(
            Wanted("drawn commands", 1_000_000),
            Wanted("drawn commands of harmless programs", 100_000),
        ),
    ),
    Part(
        row=25,
        name="mixed load",
        tests=("tests/load",),
        variables={"PERDURE_LOAD_SECONDS": "120"},
        wanted=(Wanted("seconds of mixed load", 240), Wanted("servers ended under mixed load", 80)),
        alone=True,
    ),
)

WITHOUT: Final[Mapping[int, str]] = {24: "`make mutate` asks which modules"}
