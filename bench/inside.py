"""Measures of single parts inside one process, by CPU time: `python -m bench inside [NAME ...]`.

The other scenarios see a whole server from outside. These say what one part of ours costs, with
nothing else in the way; there is nothing to compare them with but their budgets.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain
from pathlib import Path

from msgspec import structs

from perdure.client import PerdureClient
from perdure.core.context import system_context
from perdure.core.context.system_context import Observation
from perdure.embedded import open_embedded_wire
from perdure.host.clock import SystemClock
from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.location.context.registry import Subject
from perdure.location.registry import LocationRegistry
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from tests.contract.llm.protocols.anthropic import recordings as anthropic
from tests.contract.llm.protocols.bedrock import recordings as bedrock
from tests.contract.llm.protocols.gemini import recordings as gemini
from tests.contract.llm.protocols.openai_responses import recordings as responses
from tests.contract.location.opened_location import Place
from tests.support import scripted_provider, server_process
from tests.support.project import make_place

Measure = Callable[[], Awaitable[dict[str, object]]]
INSIDE: dict[str, Measure] = {}
INSTRUCTION_FILES = 5
SKILLS = 50
DELTAS = 10_000
PIECE = 16 * 1024
TURNS = 5_000
ROUND = 50
ROUNDS = 60
WARM_ROUNDS = 4


def measure(function: Measure) -> Measure:
    INSIDE[function.__name__] = function
    return function


@measure
async def boundary() -> dict[str, object]:
    """Milliseconds to look at every context source when nothing has changed (budget: 1)."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        deepest = furnish(place)
        locations = LocationRegistry(structs.replace(place.host(), clock=SystemClock()))
        costs = await looks(locations, LocationRef(str(deepest)))
        locations.close()
    return {"median_ms": round(statistics.median(costs), 3), "best_ms": round(min(costs), 3)}


def furnish(place: Place) -> Path:
    """Instruction files on the way up, and skills; the deepest directory."""
    place.git("init")
    place.write(place.home / ".config" / "opencode" / "AGENTS.md", "Be kind.\n")
    deepest = place.project
    for depth in range(INSTRUCTION_FILES - 1):
        deepest = deepest / f"level{depth}" if depth else deepest
        place.write(deepest / "AGENTS.md", f"Rule {depth}.\n" * 50)
    for number in range(SKILLS):
        front = f"---\nname: skill-{number}\ndescription: What {number} is for.\n---\n"
        skill = place.project / ".opencode" / "skills" / f"skill-{number}" / "SKILL.md"
        place.write(skill, front + "Do it.\n" * 100)
    return deepest


async def looks(locations: LocationRegistry, ref: LocationRef) -> list[float]:
    """What each of many looks cost, in milliseconds of CPU."""

    async def look() -> Observation:
        async with locations.hold(ref) as location:
            agent = location.agents.get("build")
            model = location.catalog.default()
            subject = Subject(session_id=SessionID("ses_bench"), agent=agent, model=model)
            return await location.observe(subject)

    seen = await look()
    # Files that were written just now are not trusted to be unchanged for a moment.
    await asyncio.sleep(3)
    if system_context.initialize(await look()) != system_context.initialize(seen):
        raise RuntimeError("the context changed although nothing did")
    costs: list[float] = []
    for _ in range(300):
        began = time.process_time()
        await look()
        costs.append((time.process_time() - began) * 1e3)
    return costs


@measure
async def embedded() -> dict[str, object]:
    """Milliseconds to create a Session and admit a prompt: memory, loopback (budget: 3x)."""
    near: list[list[float]] = []
    far: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with held_here(root / "near") as inside, served_elsewhere(root / "far") as outside:
            # In turn, a round each: a machine that is slow for a while is slow for both.
            for _ in range(ROUNDS):
                near.append(await admissions(inside))
                far.append(await admissions(outside))
    near, far = near[WARM_ROUNDS:], far[WARM_ROUNDS:]
    pairs = zip(map(statistics.median, far), map(statistics.median, near), strict=True)
    return {
        "memory_median_ms": round(statistics.median(chain(*near)), 3),
        "memory_best_ms": round(min(chain(*near)), 3),
        "loopback_median_ms": round(statistics.median(chain(*far)), 3),
        "loopback_best_ms": round(min(chain(*far)), 3),
        "factor_of_rounds": round(statistics.median(slow / quick for slow, quick in pairs), 2),
    }


@asynccontextmanager
async def held_here(root: Path) -> AsyncGenerator[PerdureClient]:
    async with scripted_provider.scripted_provider() as provider:
        place = make_place(root, provider)
        surroundings = place.environment
        async with open_embedded_wire(str(place.project), surroundings=surroundings) as client:
            yield client


@asynccontextmanager
async def served_elsewhere(root: Path) -> AsyncGenerator[PerdureClient]:
    """A server as its users run it: a process of its own, over a socket."""
    async with scripted_provider.scripted_provider() as provider:
        place = make_place(root, provider)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(server_process.server_process(place))
            address = f"http://127.0.0.1:{server.api.port}"
            yield await stack.enter_async_context(PerdureClient(address))


async def admissions(client: PerdureClient) -> list[float]:
    """What each of a round of pairs of calls took, in milliseconds."""
    costs: list[float] = []
    for _ in range(ROUND):
        began = time.perf_counter()
        session = await client.sessions.create()
        await client.sessions.prompt(session["id"], text="hello", resume=False)
        costs.append((time.perf_counter() - began) * 1e3)
    return costs


@measure
async def decode() -> dict[str, object]:
    """Deltas a second that each wire protocol reads, from the bytes on (budget: 150,000)."""
    return {name: f"{rate(*stream):,.0f}" for name, stream in streams().items()}


def streams() -> dict[str, tuple[WireProtocol, bytes]]:
    """A protocol and the body of one long text answer in it."""
    words = [f"w{number} " for number in range(DELTAS)]
    chat = (piece for piece in scripted_provider.text(*words).pieces if isinstance(piece, bytes))
    claude = [anthropic.begin(), *anthropic.text(0, *words), anthropic.reason("end_turn")]
    gpt = [responses.created(), *responses.message(0, *words), responses.completed()]
    google = [gemini.chunk(gemini.said(word)) for word in words]
    amazon = [bedrock.begin(), *bedrock.text(0, *words), bedrock.reason("end_turn")]
    return {
        "openai_chat": (OPENAI_CHAT, b"".join(chat)),
        "anthropic_messages": (ANTHROPIC_MESSAGES, anthropic.body_of([*claude, anthropic.STOP])),
        "openai_responses": (OPENAI_RESPONSES, responses.body_of(gpt)),
        "gemini": (GEMINI, gemini.body_of([*google, gemini.chunk(why="STOP")])),
        "bedrock_converse": (BEDROCK_CONVERSE, b"".join([*amazon, bedrock.counts()])),
    }


def rate(protocol: WireProtocol, body: bytes) -> float:
    """The best of several readings, which arrive in pieces as from a socket."""
    pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
    best = 0.0
    for _ in range(7):
        reader, state, count = protocol.frames(1_000_000), protocol.start(), 0
        began = time.process_time()
        for piece in pieces:
            for frame in reader.feed(piece):
                count += len(protocol.step(state, frame))
        if count < DELTAS:
            raise RuntimeError(f"{protocol.name} lost deltas")
        best = max(best, DELTAS / (time.process_time() - began))
    return best


@measure
async def assembly() -> dict[str, object]:
    """Milliseconds to make the next request of 5,000 turns, with what is kept (budget: 2)."""
    runs = split_segments(tuple(message for number in range(TURNS) for message in turn(number)))
    found: dict[str, object] = {}
    for protocol, _ in streams().values():
        facts = ModelFacts(name="claude-opus-4-8", output_limit=32_000)
        kept = EncodedHistory()
        costs: list[float] = []
        for count in range(len(runs) - 41, len(runs), 2):
            request = LLMRequest(
                model=ModelRef(id="m", provider_id="p"),
                system=("Be brief.",),
                tools=(ToolDefinition("read", "Reads a file.", {"type": "object"}),),
                runs=runs[:count],
                kept=kept,
            )
            began = time.process_time()
            wire_protocol.encode(protocol, request, facts)
            costs.append((time.process_time() - began) * 1e3)
        found[protocol.name] = round(statistics.median(costs[1:]), 3)
    return found


def turn(number: int) -> tuple[LLMMessage, LLMMessage]:
    asked = LLMMessage("user", (TextPart(f"What is {number}? " * 4),))
    return asked, LLMMessage("assistant", (TextPart(f"It is {number}. " * 20),), id=f"msg_{number}")


async def run(names: list[str]) -> None:
    for name in names or list(INSIDE):
        print(f"== {name}: {INSIDE[name].__doc__}", flush=True)
        for key, value in (await INSIDE[name]()).items():
            print(f"   {key:34} {value}", flush=True)
