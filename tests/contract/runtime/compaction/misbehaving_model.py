"""A model that condenses well or badly, and a runtime on virtual time that uses it.

The model counts tokens in its own way and refuses what does not fit. Everything else is the real
runtime on a real database.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from perdure.core.models.catalog import CatalogProvider, host_provider
from perdure.core.request import token_budget
from perdure.host import environment
from perdure.host.process_locks import ProcessLocks
from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, TextDelta, TextEnd, TextStart, Usage
from perdure.llm.message import TextPart
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelLimit
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop

Manner = Literal[
    "well", "fails", "breaks", "echoes", "overflows", "stalls", "says nothing", "never stops"
]
MANNERS: Final[tuple[Manner, ...]] = (
    "well", "fails", "breaks", "echoes", "overflows", "stalls", "says nothing", "never stops",
)  # fmt: skip
SUMMARY: Final = "## Objective\n- going on"
_TEN_MEGABYTES: Final = 10 * 1024 * 1024


@dataclass
class Model:
    """Implements llm.model_call.ModelCall."""

    context: int
    manner: Manner
    factor: float
    """Its tokens for one of ours."""
    turns: list[LLMRequest] = field(default_factory=list[LLMRequest])
    summaries: int = 0
    refused: int = 0

    async def __call__(self, request: LLMRequest) -> AsyncIterator[tuple[LLMEvent, ...]]:
        if request.system:
            async for batch in self._turn(request):
                yield batch
            return
        self.summaries += 1
        async for batch in self._condense(request):
            yield batch

    async def _turn(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        size = self.count(request)
        if size > self.context:
            self.refused += 1
            raise LLMError("overflow", "too many tokens")
        self.turns.append(request)
        usage = Usage(input=size, output=3)
        yield (TextStart("t"), TextDelta("t", "Bene est."), TextEnd("t"), Finish("stop", usage))

    async def _condense(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        match self.manner:
            case "well":
                assert self.count(request) <= self.context
                said = SUMMARY
            case "fails":
                raise LLMError("provider-internal", "down")
            case "overflows":
                raise LLMError("overflow", "too many tokens")
            case "breaks":
                raise ZeroDivisionError("a bug of somebody else's")
            case "echoes":
                said = "".join(texts_of(request))
            case "says nothing":
                said = " \n"
            case "stalls":
                yield (TextStart("t"), TextDelta("t", "half a"))
                await asyncio.get_running_loop().create_future()
                return
            case "never stops":
                yield (TextStart("t"),)
                for _ in range(_TEN_MEGABYTES // 4_096):
                    yield (TextDelta("t", "x" * 4_096),)
                said = ""
        yield (TextStart("t"), TextDelta("t", said), TextEnd("t"), Finish("stop", None))

    def count(self, request: LLMRequest) -> int:
        messages = [message for run in request.segments for message in run.messages]
        fixed = token_budget.estimate_system(request.system) + token_budget.estimate_tools(
            request.tools
        )
        return round(self.factor * (fixed + token_budget.estimate_messages(messages)))


def texts_of(request: LLMRequest) -> list[str]:
    parts = (
        part
        for segment in request.segments
        for message in segment.messages
        for part in message.content
    )
    return [part.text for part in parts if isinstance(part, TextPart)]


def provider(model: ModelCall, context: int) -> CatalogProvider:
    supplied = host_provider("torture", {"one": model})
    limit = ModelLimit(context=context, output=context // 16)
    models = {name: replace(found, limit=limit) for name, found in supplied.models.items()}
    return replace(supplied, models=models)


@asynccontextmanager
async def opened(
    root: Path, loop: VirtualLoop, model: ModelCall, context: int
) -> AsyncGenerator[Runtime]:
    clock = VirtualClock(loop)
    path = str(root / "perdure.db")
    migrate.migrate(path)
    # In the smallest windows there is no room for many tools, whatever is condensed.
    denied: list[JsonObject] = [{"action": "*", "resource": "*", "effect": "deny"}]
    small = 0 < context < 20_000
    configuration: JsonObject = {"permissions": denied} if small else {}
    (root / "opencode.json").write_bytes(codec.encode(configuration))
    settings = RuntimeSettings(
        environment=environment.from_variables(
            {"HOME": str(root), "TMPDIR": str(root), "PERDURE_TRUSTED": "*"}
        ),
        data_dir=str(root),
        default_directory=str(root),
        providers=(provider(model, context),),
    )
    async with AsyncExitStack() as stack:
        locks = ProcessLocks(str(root / "processes"), "prc_torture")
        database = SqliteDatabase(path, inline=True)
        foundations = Platform(
            database=await stack.enter_async_context(database),
            processes=stack.enter_context(locks),
            clock=clock,
            ids=SeededIds(1, clock),
        )
        yield await stack.enter_async_context(compose(settings, foundations, path))
