"""Sends a server what could stop its event loop: `python -m bench inside hostile_mentions ...`.

Each input is sent to a server in a process of its own, while another process asks that server
how it is. Measured is the longest time that any of those other requests waited; no input may
make it longer than 250 ms. A stall is named with the function in which it was.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.inside import measure
from perdure.schema import codec
from tests.support import server_process
from tests.support.api import Api
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    Call,
    Reply,
    ScriptedProvider,
    calls,
    scripted_provider,
    text,
)

WAIT_MS_MAX = 250
STALL = "the event loop stalled"
SECONDS_MAX = 40
MILLION = 1_000_000


@dataclass(frozen=True)
class Site:
    api: Api
    folders: ProjectFolders
    provider: ScriptedProvider
    session: str

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folders.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    async def post(self, path: str, body: bytes) -> None:
        """Send a body and take any answer: only the others' waiting counts."""
        await self.api.raw(self.api.message("POST", path, body))

    async def get(self, path: str) -> None:
        await self.api.raw(self.api.message("GET", path))

    async def prompt(self, body: bytes) -> None:
        await self.post(f"/api/session/{self.session}/prompt", body)

    async def answer(self, *replies: Reply) -> None:
        """Let the model answer a prompt like this, and wait until it is done."""
        waiting = list(replies)
        # The request for a title offers no tools; the script is not for it.
        self.provider.otherwise = lambda request: (
            waiting.pop(0) if waiting and "tools" in request.body else text("done")
        )
        await self.api.prompt(self.session, "go")
        await self.settled()

    async def settled(self) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await self.post(f"/api/session/{self.session}/wait", b"{}")

    async def call(self, tool: str, **arguments: object) -> None:
        await self.answer(calls(Call(tool, arguments)))


Hostile = Callable[[Site], Awaitable[None]]


def hostile(send: Hostile) -> Hostile:
    """Register what `send` sends as a part that can be measured."""

    async def measured() -> dict[str, object]:
        return await longest_wait(send)

    measured.__name__ = f"hostile_{send.__name__}"
    measured.__doc__ = f"Milliseconds that others wait at most (budget: {WAIT_MS_MAX})."
    measure(measured)
    return send


async def longest_wait(send: Hostile) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            folders = make_folders(Path(folder), provider)
            async with server_process.server_process(folders) as server:
                session = await server.api.create(agent="terse")
                site = Site(server.api, folders, provider, session)
                await site.answer(text("warm"))
                async with probing(server.api.port, session) as mark:
                    await mark()
                    await send(site)
                    waited = await mark()
            stalls = [
                line.partition(" at ")[2] for line in server.log.splitlines() if STALL in line
            ]
    found: dict[str, object] = {"longest_wait_ms": waited}
    return found | {f"stall {number}": place[:160] for number, place in enumerate(stalls, 1)}


@asynccontextmanager
async def probing(port: int, session: str) -> AsyncGenerator[Callable[[], Awaitable[float]]]:
    probe = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.probe", str(port)),
        *("/api/health", f"/api/session/{session}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert probe.stdin is not None
    assert probe.stdout is not None

    async def mark() -> float:
        probe.stdin.write(b"\n")
        return float(await probe.stdout.readline())

    try:
        yield mark
    finally:
        probe.stdin.close()
        await probe.wait()


# ---- what clients send --------------------------------------------------------------------------


@hostile
async def digits_in_a_query(site: Site) -> None:
    for digits in ("1" * 30_000, "1" * 30_000 + "x", "." * 30_000, "1e" * 20_000):
        await site.get(f"/api/pty/pty_{'a' * 20}/connect?cursor={digits}")
        await site.get(f"/api/session?limit={digits}")


@hostile
async def fields_in_a_query(site: Site) -> None:
    await site.get("/api/session?" + "a=1&" * 15_000)
    await site.get("/api/session?" + "&".join(f"a{n}=%41" for n in range(5_000)))
    await site.get("/api/session?directory=" + "%41" * 20_000)


@hostile
async def keys_in_a_body(site: Site) -> None:
    keys = b",".join(b'"%d":1' % n for n in range(int(1.5 * MILLION)))
    await site.prompt(b'{"prompt":{"text":"a"},%b}' % keys)
    await site.prompt(b'{"prompt":{"text":"a",%b}}' % keys)
    await site.prompt(b'{"prompt":{"text":1,%b}}' % keys)


@hostile
async def items_in_a_body(site: Site) -> None:
    await site.prompt(b'{"prompt":{"text":"a","files":[%b]}}' % b",".join([b"{}"] * MILLION))
    await site.prompt(b'{"prompt":{"text":"a","files":[%b]}}' % b",".join([b"[]"] * MILLION))
    item = b'{"uri":"a","mime":"b"}'
    await site.prompt(b'{"prompt":{"text":"a","files":[%b]}}' % b",".join([item] * MILLION))


@hostile
async def nesting_in_a_body(site: Site) -> None:
    await site.prompt(b"[" * 30 * MILLION)
    await site.prompt(b'{"prompt":{"text":"a","x":' + b'{"a":' * 5 * MILLION)
    await site.prompt(b'{"prompt":' + b"[" * 400 + b"[]," * 5 * MILLION)


@hostile
async def a_long_text(site: Site) -> None:
    for words in (b"a" * 4 * MILLION, b"\\u00e9" * 2 * MILLION, b"\\n" * 4 * MILLION):
        await site.prompt(b'{"prompt":{"text":"%b"}}' % words)
        await site.settled()
    await site.get(f"/api/session/{site.session}/message?order=asc&limit=200")
    await site.get(f"/api/session/{site.session}/history?limit=100&after=0")
    await site.get(f"/api/session/{site.session}/context")


@hostile
async def mentions(site: Site) -> None:
    for piece in ("@a ", "@", "@/a ", "@a", "@. ", "@a.,;:!?"):
        words = piece * (3 * MILLION // len(piece))
        await site.prompt(codec.encode({"prompt": {"text": words}}))
        await site.settled()


@hostile
async def a_search_for_files(site: Site) -> None:
    for n in range(200):
        for m in range(100):
            site.write(f"{'a' * 100}{n}/{'ab' * 60}{m}.txt", "")
    for query in ("ab" * 500, "a" * 1_000, "b" * 50 + "c", "a b" * 300):
        await site.get(f"/api/fs/find?query={query.replace(' ', '%20')}&limit=1000")


# ---- what a model answers -----------------------------------------------------------------------


def patch_of(*hunks: str) -> str:
    return "*** Begin Patch\n*** Update File: big.txt\n" + "".join(hunks) + "*** End Patch"


@hostile
async def a_patch_with_many_changes(site: Site) -> None:
    site.write("big.txt", "".join(f"line {n}\n" for n in range(200_000)))
    hunks = [f"@@\n-line {n * 100}\n+changed {n}\n" for n in range(2_000)]
    await site.call("apply_patch", patchText=patch_of(*hunks))


@hostile
async def a_patch_with_near_misses(site: Site) -> None:
    site.write("big.txt", "same\n" * 400_000)
    long = "@@\n" + " same\n" * 20_000 + "-other\n"
    await site.call("apply_patch", patchText=patch_of(long))
    hunks = ["@@ no such line\n-same\n+changed\n"] * 2_000
    await site.call("apply_patch", patchText=patch_of(*hunks))
    await site.call("apply_patch", patchText=patch_of(*["@@\n- same \n+b\n"] * 20_000))


@hostile
async def a_patch_of_short_lines(site: Site) -> None:
    site.write("big.txt", "\n" * 16 * MILLION)
    await site.call("apply_patch", patchText=patch_of("@@\n-\n+a\n"))
    added = "*** Begin Patch\n*** Add File: new.txt\n" + "+\n" * 600_000 + "*** End Patch"
    await site.call("apply_patch", patchText=added)


@hostile
async def an_edit_of_every_letter(site: Site) -> None:
    site.write("big.txt", "a b\n" * (14 * MILLION // 4))
    await site.call("edit", path="big.txt", oldString="a", newString="c", replaceAll=True)
    site.write("big.txt", "a\n" * 3 * MILLION)
    await site.call("edit", path="big.txt", oldString="\n", newString="d", replaceAll=True)
    await site.call("edit", path="big.txt", oldString="d", newString="\n", replaceAll=True)


@hostile
async def an_edit_of_empty_lines(site: Site) -> None:
    site.write("big.txt", "\n" * 8 * MILLION)
    await site.call("edit", path="big.txt", oldString="\n\n", newString="x", replaceAll=True)
    site.write("big.txt", "a" * 15 * MILLION)
    await site.call("edit", path="big.txt", oldString="a" * 5_000 + "b", newString="x")


@hostile
async def a_large_write(site: Site) -> None:
    await site.call("write", path="new.txt", content="\n" * 4 * MILLION)
    await site.call("write", path="new.txt", content="\n" * MILLION)
    await site.call("write", path="other.txt", content="é" * MILLION)
    await site.call("read", path="new.txt", offset=MILLION)


@hostile
async def a_call_with_many_arguments(site: Site) -> None:
    keys = {str(n): n for n in range(MILLION)}
    await site.answer(calls(Call("bash", {"command": "true", **keys})))
    await site.answer(calls(Call("nothing", "[" * 5 * MILLION)))
    await site.answer(calls(Call("todowrite", {"todos": [{}] * MILLION})))


@hostile
async def an_answer_of_many_pieces(site: Site) -> None:
    await site.answer(text(*["a"] * 200_000))
    await site.answer(text(*["word "] * 100_000, reasoning=["hm "] * 100_000))


@hostile
async def a_hostile_command(site: Site) -> None:
    for piece in ("(", "$(", "{a,", "'", "\\\n", "a|", "<<a ", "if ", "[[ ", "`", "a;"):
        command = piece * (8_000 // len(piece))
        await site.call("bash", command=command, description="x")
    for piece in ("/a ", "../", "~/", "a ", "'a' "):
        await site.call("bash", command="true " + piece * (120_000 // len(piece)), description="x")


@hostile
async def patterns_to_search_for(site: Site) -> None:
    for pattern in ("{a,b}" * 100, "[" * 1_000, "*a" * 500, "{" * 1_000, "**/" * 300):
        await site.call("glob", pattern=pattern)
    for pattern in ("(a*)*b", "(x+x+)+y", "a{1,1000}" * 50):
        await site.call("grep", pattern=pattern)


@hostile
async def output_of_a_command(site: Site) -> None:
    await site.call("bash", command="head -c 60000000 /dev/zero | tr '\\0' '\\n'", description="x")
    await site.call("bash", command="head -c 60000000 /dev/urandom", description="x")
    await site.call("bash", command="yes | head -c 90000000", description="x")


# ---- what is in a project -----------------------------------------------------------------------


@hostile
async def a_configuration(site: Site) -> None:
    base = (site.folders.project / "opencode.json").read_text().rstrip("}")
    for filler in (
        '"x":[' + "[" * 500 + "]" * 500 + "]" + ",\n" * MILLION,
        '"instructions":[' + '"a",' * 500_000 + '"a"]',
        "/*" + "*" * 3 * MILLION + "*/" + '"x":1',
        '"x":"' + "{env:A" * 500_000 + '"',
    ):
        site.write(f"sub{len(filler)}/opencode.json", base + "," + filler + "}")
        await site.get(f"/api/agent?location[directory]={site.folders.project}/sub{len(filler)}")


@hostile
async def agent_files(site: Site) -> None:
    for number, piece in enumerate(("1", "a: ", "- ", "[", "{a: ", "'", '"\\', "#", "a:\n", " \n")):
        matter = "---\nx: " + piece * (250_000 // len(piece)) + "\n---\nhello"
        site.write(f"sub/.opencode/agent/a{number}.md", matter)
    await site.get(f"/api/agent?location[directory]={site.folders.project}/sub")
    await site.get(f"/api/command?location[directory]={site.folders.project}/sub")


@hostile
async def ignore_files(site: Site) -> None:
    rules = "".join(f"{'*a' * 50}{n}\n" for n in range(2_000)) + "[" * 50_000 + "\n"
    site.write(".gitignore", rules)
    for n in range(2_000):
        site.write(f"d{n % 20}/{'a' * 200}{n}", "")
    await site.call("bash", command="true", description="x")


@hostile
async def a_revert_of_large_files(site: Site) -> None:
    site.write("big.txt", "".join(f"{n}\n" for n in range(2 * MILLION)))
    await site.call("bash", command="tac big.txt > b && mv b big.txt", description="x")
    messages = await site.api.messages(site.session)
    users = [message["id"] for message in messages if message["type"] == "user"]
    body = codec.encode({"messageID": users[-1]})
    await site.post(f"/api/session/{site.session}/revert/stage", body)
