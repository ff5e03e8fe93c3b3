"""The clients of a simulated machine: what they send, and what they were answered.

They check the answers: a receipt stays what it was, a retry is the same admission, another body
under a used id is refused. Readers follow a Session over crashes, from the last sequence they saw,
and keep every frame.
"""

import asyncio
from contextlib import nullcontext, suppress
from typing import Final

from perdure.core import limits
from perdure.net import sse
from perdure.ports import DatabaseError
from perdure.runtime.app.runtime import Runtime
from perdure.schema import codec
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import Reply
from perdure.schema.errors import (
    MessageNotFoundError,
    NothingToDecideError,
    PermissionNotFoundError,
    PromptConflictError,
    PromptSettledError,
    QuestionNotFoundError,
    ServiceUnavailableError,
    SessionBusyError,
)
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.query import MessageAnchor, Order
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.recovery import Decision
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import State
from tests.harness.checkers.ledger import Waiting
from tests.harness.simulation.machine import MODELS, Answer, Died, Process, SimulatedMachine
from tests.harness.simulation.provider import SimulatedDefect
from tests.harness.simulation.unasked import UnaskedPrompts

_FRAME_BYTES_MAX: Final = 1 << 30
_PAGE: Final = 7
_COMPACTION_SECONDS: Final = 3.0
_WAIT_SECONDS: Final = 0.5
_LONG_WORDS: Final = limits.COMPACTION_KEEP_TOKENS // 2 - 700
"""About as much as stays as it is after a compaction; with what follows it is more."""


class SentPrompt(State):
    session_id: SessionID
    id: MessageID
    text: str
    delivery: Delivery
    receipt: AdmittedPrompt | None = None
    woken: bool = False
    """Whether anyone ever asked for it to be run."""


class Reader(State):
    """A client that follows a Session and reconnects with the last sequence it saw."""

    session_id: SessionID
    start: Seq
    frames: list[tuple[Seq, bytes]]
    process: str = ""

    @property
    def cursor(self) -> Seq:
        return self.frames[-1][0] if self.frames else self.start


class Clients:
    def __init__(self, machine: SimulatedMachine) -> None:
        self.machine = machine
        self._sent = 0
        self.unasked = UnaskedPrompts(machine.ledger)
        self.sessions: list[SessionID] = []
        self.prompts: dict[MessageID, SentPrompt] = {}
        self.readers: list[Reader] = []

    # ---- sessions -------------------------------------------------------------------------------

    async def create(self, process: Process) -> None:
        session_id = SessionID(f"ses_sim{len(self.sessions) + 1:03d}")
        model = ModelRef(id=self.machine.chance.choice(MODELS), provider_id="sim")
        self.machine.trace.say(f"{process.name} create {session_id}")
        made = await self.machine.ask(
            process, lambda r: r.sessions.create(id=session_id, model=model)
        )
        if isinstance(made, Answer):
            self.sessions.append(session_id)
            self.follow(session_id, -1)

    async def create_again(self, process: Process, session_id: SessionID) -> None:
        """An id that exists gives the stored Session, whatever else is asked."""
        other = ModelRef(id="another", provider_id="sim")

        async def twice(runtime: Runtime) -> tuple[SessionInfo, bytes]:
            made = await runtime.sessions.create(id=session_id, model=other)
            return made, await runtime.sessions.get(session_id)

        reply = await self.machine.ask(process, twice)
        if isinstance(reply, Answer) and reply.value[0].model == other:
            self.machine.witness.accuse("P1", f"{session_id} was created twice")

    async def switch_agent(self, process: Process, session_id: SessionID, agent: str) -> None:
        self.machine.trace.say(f"{process.name} agent {agent} in {session_id}")
        await self.machine.ask(process, lambda r: r.sessions.switch_agent(session_id, agent))

    async def switch_model(self, process: Process, session_id: SessionID, model: str) -> None:
        self.machine.trace.say(f"{process.name} model {model} in {session_id}")
        ref = ModelRef(id=model, provider_id="sim")
        await self.machine.ask(process, lambda r: r.sessions.switch_model(session_id, ref))

    async def interrupt(self, process: Process, session_id: SessionID) -> None:
        self.machine.trace.say(f"{process.name} interrupt {session_id}")

        async def interrupt(runtime: Runtime) -> None:
            runs = any(running == session_id for _, running in self.machine.active())
            here = session_id in runtime.sessions.active()
            if runs:
                self.machine.witness.excuse(session_id)
            await runtime.sessions.interrupt(session_id)
            if not here:
                # Whichever process runs it obeys a little later.
                self.machine.witness.excuse(session_id)

        asked = self.unasked.count(session_id)
        if isinstance(await self.machine.ask(process, interrupt), Answer):
            self.unasked.stopped(session_id, asked=asked)

    async def decide(self, process: Process, session_id: SessionID, decision: Decision) -> None:
        """Decide what happens to a request that a crash left."""
        self.machine.trace.say(f"{process.name} {decision} what {session_id} owes")
        # Another client was quicker, or has sent a prompt.
        with suppress(NothingToDecideError):
            if decision == "retry":
                self.machine.witness.decided(session_id)
            with self.unasked.asking(session_id):
                await self.machine.ask(process, lambda r: r.recovery.decide(session_id, decision))

    async def answer(self, process: Process, session_id: SessionID, reply: Reply) -> None:
        """Answer the oldest pending permission request, if there is one."""

        async def answer(runtime: Runtime) -> None:
            for request in (await runtime.permissions.list(session_id))[:1]:
                self.machine.trace.say(f"{process.name} {reply} for {request.action}")
                if reply == "reject":
                    self.machine.witness.excuse(session_id)
                word = PermissionWord(reply=reply)
                await runtime.permissions.reply(session_id, request.id, word)

        # Another client was quicker, or the process that asked is gone.
        with suppress(PermissionNotFoundError):
            await self.machine.ask(process, answer)

    async def answer_question(self, process: Process, session_id: SessionID, *, give: bool) -> None:
        """Answer or reject the oldest pending question, if there is one."""

        async def answer(runtime: Runtime) -> None:
            for request in (await runtime.questions.list(session_id))[:1]:
                self.machine.trace.say(f"{process.name} answers {request.id} give={give}")
                if give:
                    answers = (("yes",),) * len(request.questions)
                    await runtime.questions.reply(session_id, request.id, answers)
                else:
                    self.machine.witness.excuse(session_id)
                    await runtime.questions.reject(session_id, request.id)

        # Another client was quicker, or the process that asked is gone.
        with suppress(QuestionNotFoundError):
            await self.machine.ask(process, answer)

    async def compact(self, process: Process, session_id: SessionID) -> None:
        """Waits for its turn, so a client that has waited long enough goes away."""
        self.machine.trace.say(f"{process.name} compact {session_id}")
        with suppress(ServiceUnavailableError, SimulatedDefect):
            await self.machine.ask_briefly(
                process, lambda r: r.sessions.compact(session_id), seconds=_COMPACTION_SECONDS
            )

    async def stage(self, process: Process, session_id: SessionID, message: MessageID) -> None:
        self.machine.trace.say(f"{process.name} stage a revert of {session_id} to {message}")
        with suppress(SessionBusyError, MessageNotFoundError):
            await self.machine.ask(process, lambda r: r.sessions.revert.stage(session_id, message))
            # Nothing runs until it is decided, and then only on request.
            self.machine.witness.excuse(session_id)

    async def end_revert(self, process: Process, session_id: SessionID, *, commit: bool) -> None:
        self.machine.trace.say(f"{process.name} end the revert of {session_id} commit={commit}")

        async def end(runtime: Runtime) -> None:
            revert = runtime.sessions.revert
            await (revert.commit(session_id) if commit else revert.clear(session_id))

        with suppress(SessionBusyError):
            await self.machine.ask(process, end)

    async def fork(self, process: Process, session_id: SessionID) -> None:
        """A Session of its own, that goes on from where this one is."""
        forked = SessionID(f"ses_sim{len(self.sessions) + 1:03d}")
        self.machine.trace.say(f"{process.name} fork {session_id} as {forked}")
        made = await self.machine.ask(process, lambda r: r.forks.fork(session_id, id=forked))
        if isinstance(made, Answer):
            self.sessions.append(forked)
            self.follow(forked, -1)

    async def label(self, process: Process, session_id: SessionID, title: str) -> None:
        """Rename a Session, and archive or unarchive it."""
        self.machine.trace.say(f"{process.name} call {session_id} {title}")

        async def label(runtime: Runtime) -> None:
            changes = runtime.changes
            named = await changes.rename(session_id, title)
            await (changes.unarchive if named.time.archived else changes.archive)(session_id)

        await self.machine.ask(process, label)

    async def wait(self, process: Process, session_id: SessionID) -> bool:
        """Whether nothing runs there, as far as that process knows before the client leaves."""
        self.machine.trace.say(f"{process.name} wait for {session_id}")
        return await self.machine.ask_briefly(
            process, lambda r: r.sessions.wait(session_id), seconds=_WAIT_SECONDS
        )

    # ---- prompts that wait ----------------------------------------------------------------------

    async def revise(
        self, process: Process, waiting: Waiting, *, text: str | None, delivery: Delivery | None
    ) -> None:
        self.machine.trace.say(f"{process.name} revise {waiting.id} {text} {delivery}")
        prompt = None if text is None else PromptInput(text=text)
        # A boundary was quicker, or a revert took it away.
        with suppress(PromptSettledError, MessageNotFoundError):
            await self.machine.ask(
                process,
                lambda r: r.inbox.revise(
                    waiting.session_id, waiting.id, prompt=prompt, delivery=delivery
                ),
            )

    async def cancel(self, process: Process, waiting: Waiting) -> None:
        self.machine.trace.say(f"{process.name} cancel {waiting.id}")
        with suppress(PromptSettledError, MessageNotFoundError):
            await self.machine.ask(
                process, lambda r: r.inbox.cancel(waiting.session_id, waiting.id)
            )

    async def reorder(
        self, process: Process, session_id: SessionID, order: list[MessageID]
    ) -> None:
        self.machine.trace.say(f"{process.name} reorder {order} in {session_id}")
        with suppress(PromptSettledError, MessageNotFoundError):
            await self.machine.ask(process, lambda r: r.inbox.reorder(session_id, order))

    # ---- prompts --------------------------------------------------------------------------------

    def write(self, session_id: SessionID, delivery: Delivery, *, long: bool = False) -> SentPrompt:
        """A prompt that has not been sent yet; a long one is worth condensing."""
        self._sent += 1
        message_id = MessageID(f"msg_sim{self._sent:04d}")
        text = f"prompt {self._sent}" + " at length" * (_LONG_WORDS if long else 0)
        prompt = SentPrompt(session_id, message_id, text, delivery)
        self.prompts[message_id] = prompt
        return prompt

    def known(self, message_id: MessageID) -> SentPrompt:
        """A prompt that is in the inbox: of a client, or a task that the runtime admitted."""
        if (prompt := self.prompts.get(message_id)) is not None:
            return prompt
        task = self.machine.ledger.admission(message_id)
        return SentPrompt(task.session_id, message_id, task.prompt.text, task.delivery)

    async def send(self, process: Process, prompt: SentPrompt, *, resume: bool = True) -> None:
        """Send it, perhaps not for the first time: the receipt must be the same."""
        self.machine.trace.say(f"{process.name} {prompt.delivery} {prompt.id} resume={resume}")
        prompt.woken = prompt.woken or resume
        with self.unasked.asking(prompt.session_id) if resume else nullcontext():
            reply = await self.machine.ask(
                process,
                lambda r: r.sessions.prompt(
                    prompt.session_id,
                    PromptInput(text=prompt.text),
                    id=prompt.id,
                    delivery=prompt.delivery,
                    resume=resume,
                ),
            )
        if isinstance(reply, Died):
            return
        if not resume:
            self.unasked.admitted(prompt.session_id)
        receipt = reply.value
        earlier = prompt.receipt
        if earlier is not None and _essence(earlier) != _essence(receipt):
            self._excuse_revert(prompt, earlier)
        prompt.receipt = receipt

    def _excuse_revert(self, prompt: SentPrompt, earlier: AdmittedPrompt) -> None:
        """What a revert took away may be admitted anew; anything else has one receipt."""
        if not self.machine.ledger.reverted_since(prompt.session_id, earlier.admitted_seq):
            self.machine.witness.accuse("P1", f"two receipts for {prompt.id}")

    async def send_other(self, process: Process, prompt: SentPrompt) -> None:
        """Another body under the id of a prompt that was admitted."""
        self.machine.trace.say(f"{process.name} other body for {prompt.id}")
        other = PromptInput(text=f"{prompt.text}, but different")
        try:
            reply = await self.machine.ask(
                process,
                lambda r: r.sessions.prompt(
                    prompt.session_id, other, id=prompt.id, delivery=prompt.delivery
                ),
            )
        except PromptConflictError:
            return
        if isinstance(reply, Answer):
            self.machine.witness.accuse("P1", f"{prompt.id} was admitted with two bodies")

    # ---- reading --------------------------------------------------------------------------------

    async def page_through(self, process: Process, session_id: SessionID, after: int) -> None:
        """Durable history in pages must be the suffix of the log at that moment."""

        async def read(runtime: Runtime) -> list[int]:
            seqs: list[int] = []
            at, more = after, True
            while more:
                page, more = await runtime.sessions.history(session_id, after=at, limit=_PAGE)
                seqs += [codec.decode_any(wire)["durable"]["seq"] for wire in page]
                at = seqs[-1] if seqs else at
            return seqs

        reply = await self.machine.ask(process, read)
        if isinstance(reply, Answer):
            first = max(after, 0) + 1
            if reply.value != list(range(first, first + len(reply.value))):
                self.machine.witness.accuse("P3", f"history after {after} was {reply.value}")

    async def read_messages(self, process: Process, session_id: SessionID, order: Order) -> None:
        """The transcript in pages has each message once, and all of them if nothing happens."""
        ledger = self.machine.ledger

        async def read(runtime: Runtime) -> list[int]:
            seqs: list[int] = []
            anchor, more = None, True
            while more:
                page = await runtime.sessions.messages(
                    session_id, limit=_PAGE, order=order, anchor=anchor
                )
                seqs += [row.seq for row in page.rows]
                more = page.has_next
                if more:
                    anchor = MessageAnchor(seq=seqs[-1], direction="next")
            return seqs

        before = ledger.latest(session_id)
        reply = await self.machine.ask(process, read)
        if isinstance(reply, Answer):
            ordered = sorted(set(reply.value), reverse=order == "desc")
            stood = sorted(row.seq for row in ledger.messages(session_id))
            whole = ledger.latest(session_id) != before or sorted(reply.value) == stood
            if reply.value != ordered or not whole:
                self.machine.witness.accuse("P3", f"messages {order} were {reply.value}")

    def follow(self, session_id: SessionID, after: int) -> None:
        self.readers.append(Reader(session_id, Seq(after), []))

    def reconnect(self) -> None:
        """Readers whose process is gone continue in another one, from their cursor."""
        alive = {process.name for process in self.machine.processes if process.alive}
        for reader in self.readers:
            if reader.process not in alive and alive:
                process = self.machine.some()
                reader.process = process.name
                self.machine.loop.spawn(process.virtual_process, _read(process.runtime, reader))


async def _read(runtime: Runtime, reader: Reader) -> None:
    frames = sse.Reader(bytes_max=_FRAME_BYTES_MAX)
    events = runtime.sessions.events(reader.session_id, after=reader.cursor)
    try:
        async for chunk in events:
            for frame in frames.feed(chunk):
                reader.frames.append((Seq(int(frame.id)), frame.data))
    except (asyncio.CancelledError, DatabaseError):
        # The process closes; the reader continues with another one.
        return


def _essence(receipt: AdmittedPrompt) -> tuple[object, ...]:
    """What stays the same in every receipt of one admission: all but the promotion."""
    return (
        receipt.admitted_seq,
        receipt.id,
        receipt.session_id,
        receipt.prompt,
        receipt.delivery,
        receipt.time_created,
    )
