"""Anything a client or the world may do, in any order, against a model of lists and dicts.

Each rule is one operation with the outcome that it must have. What must always hold is looked at
after every rule. Prompts run while time passes, so that an operation may meet a Session at any
point of a run; `settle` lets everything come to rest, and is the only place that expects that.
"""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from perdure.runtime.app.runtime import Runtime
from perdure.schema import codec
from perdure.schema.errors import (
    InvalidRequestError,
    MessageNotFoundError,
    PromptConflictError,
    ServiceUnavailableError,
    SessionBusyError,
)
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.query import Order
from perdure.schema.session import event as events
from perdure.schema.session.prompt import Delivery
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from tests.state_machine import reading
from tests.state_machine.data_directory import CAREFUL, MODELS, PROVIDER, DataDirectory, Plan
from tests.state_machine.expectations import Expectations, Sent

MEMORY: Final = Path("/dev/shm")
REST_SECONDS: Final = 2.0
"""Longer than a process takes to notice what is waiting."""
SESSIONS_MAX: Final = 4
AGENTS: Final = ("build", "plan", "hasty", CAREFUL, CAREFUL, "nobody")
DELIVERIES: Final[tuple[Delivery, ...]] = ("steer", "queue")
ORDERS: Final[tuple[Order, ...]] = ("asc", "desc")
PLANS: Final[tuple[Plan, ...]] = (
    "text", "text", "note", "large", "slow", "ask", "wonder", "fail",
)  # fmt: skip


class Sessions(RuleBasedStateMachine):
    sessions: Bundle[SessionID] = Bundle("sessions")
    prompts: Bundle[MessageID] = Bundle("prompts")
    done: ClassVar[Counter[str]] = Counter()
    """Histories and steps, of all machines of a class."""

    def __init__(self) -> None:
        super().__init__()
        memory = MEMORY if MEMORY.is_dir() else None
        self._folder = tempfile.TemporaryDirectory(prefix="perdure-", dir=memory)
        self._numbers = 0

    @initialize(target=sessions, seed=st.integers(0, 1_000_000))
    def move_in(self, seed: int) -> SessionID:
        self.directory = DataDirectory(Path(self._folder.name), seed)
        self.expected = Expectations(self.directory.path)
        return self._create(agent=None)

    def teardown(self) -> None:
        self.done["histories"] += 1
        if not hasattr(self, "expected"):
            self._folder.cleanup()
            return
        try:
            # After a failure nothing more is looked for: it would hide what was found.
            if self.expected.sound:
                self._check_everything()
        finally:
            self.directory.demolish()
            self.expected.close()
            self._folder.cleanup()

    def _check_everything(self) -> None:
        self.settle()
        self.expected.check_unchanged()
        assert all(count == 1 for count in self.directory.effects.values()), (
            "an effect was repeated"
        )
        assert self.directory.loop.complaints == []

    @invariant()
    def promises_hold(self) -> None:
        self.done["steps"] += 1
        if hasattr(self, "expected"):
            self.expected.look()

    # ---- Sessions -------------------------------------------------------------------------------

    @rule(target=sessions, agent=st.sampled_from((None, *AGENTS)))
    def create(self, agent: str | None) -> SessionID:
        return self._create(agent)

    def _create(self, agent: str | None) -> SessionID:
        self._numbers += 1
        number = self._numbers if len(self.expected.sessions) < SESSIONS_MAX else 1
        session_id = SessionID(f"ses_{number:03d}")
        model = ModelRef(id=MODELS[0], provider_id=PROVIDER)
        new = session_id not in self.expected.sessions
        before = [] if new else self.log(session_id)
        made = self.directory.ask(
            lambda r: r.sessions.create(id=session_id, agent=agent, model=model)
        )
        assert made.id == session_id
        self.expected.look()
        known = self.expected.sessions[session_id]
        assert len(known.log) == 1 if new else [*known.log][: len(before)] == before
        return session_id

    @rule(session_id=sessions, agent=st.sampled_from(AGENTS))
    def create_again(self, session_id: SessionID, agent: str) -> None:
        """The id that exists gives the stored Session, whatever else is asked."""
        stored, again = self.directory.ask(lambda r: reading.created_again(r, session_id, agent))
        assert (again.agent, again.model, again.id) == (stored.agent, stored.model, session_id)

    @rule(session_id=sessions, agent=st.sampled_from(AGENTS))
    def switch_agent(self, session_id: SessionID, agent: str) -> None:
        self.directory.ask(lambda r: r.sessions.switch_agent(session_id, agent))
        assert self.info(session_id).agent == agent

    @rule(session_id=sessions, model=st.sampled_from((*MODELS, *MODELS, "missing")))
    def switch_model(self, session_id: SessionID, model: str) -> None:
        wanted = ModelRef(id=model, provider_id=PROVIDER)
        self.directory.ask(lambda r: r.sessions.switch_model(session_id, wanted))
        found = self.info(session_id).model
        assert isinstance(found, ModelRef)
        assert found.id == model

    # ---- prompts --------------------------------------------------------------------------------

    @rule(
        target=prompts,
        session_id=sessions,
        delivery=st.sampled_from(DELIVERIES),
        resume=st.booleans(),
        plan=st.sampled_from(PLANS),
    )
    def prompt(
        self, session_id: SessionID, delivery: Delivery, resume: bool, plan: Plan
    ) -> MessageID:
        sent = self.write(session_id, delivery)
        self.directory.plans.append(plan)
        self.send(sent, resume=resume)
        return sent.id

    @rule(
        target=prompts,
        session_id=sessions,
        other=sessions,
        plans=st.lists(st.sampled_from(PLANS), min_size=2, max_size=4),
    )
    def prompt_at_once(
        self, session_id: SessionID, other: SessionID, plans: list[Plan]
    ) -> MessageID:
        """Several clients at the same moment; two of them send the same."""
        self.directory.plans.extend(plans)
        ids = [session_id, other] * 2
        several = [self.write(ids[n], DELIVERIES[n % 3 == 2]) for n in range(len(plans))]
        for sent in several:
            self.expected.wake(sent.session_id)

        async def send(runtime: Runtime) -> list[AdmittedPrompt]:
            work = [reading.send(runtime, sent, resume=True) for sent in (*several, several[0])]
            return await asyncio.gather(*work)

        for receipt in self.directory.ask(send):
            self.expected.receipt(receipt)
            self.expected.sent[receipt.id].due = True
        return several[0].id

    @rule(id=prompts, resume=st.booleans())
    def prompt_again(self, id: MessageID, resume: bool) -> None:
        """The same id and body: the same receipt, or a new one when a revert took the first."""
        self.send(self.expected.sent[id], resume=resume)

    @rule(id=prompts, session_id=sessions, other=st.sampled_from(("text", "delivery", "session")))
    def prompt_otherwise(self, id: MessageID, session_id: SessionID, other: str) -> None:
        sent = self.expected.sent[id]
        wrong = Sent(id, sent.session_id, sent.text, sent.delivery)
        match other:
            case "text":
                wrong.text = f"{sent.text}, but different"
            case "delivery":
                wrong.delivery = "queue" if sent.delivery == "steer" else "steer"
            case _:
                wrong.session_id = session_id
        if sent.admitted is None or (wrong.session_id == sent.session_id and other == "session"):
            return
        before = len(self.log(wrong.session_id))
        try:
            self.directory.ask(lambda r: reading.send(r, wrong, resume=False))
        except PromptConflictError:
            committed = self.log(wrong.session_id)[before:]
            assert all(type(item.event).__name__ != "PromptAdmitted" for item in committed)
            return
        raise AssertionError(f"{id} was admitted with another {other}")

    @rule(
        target=prompts,
        session_id=sessions,
        delivery=st.sampled_from(DELIVERIES),
        plan=st.sampled_from(PLANS),
        after=st.integers(1, 40),
    )
    def prompt_and_crash(
        self, session_id: SessionID, delivery: Delivery, plan: Plan, after: int
    ) -> MessageID:
        """A client with a receipt keeps the admission; one without may send the prompt again."""
        sent = self.write(session_id, delivery)
        self.directory.plans.append(plan)
        held = [one for one in self.expected.of(session_id) if one.held]
        self.expected.decide(session_id)
        receipt = self.directory.ask_and_crash(
            lambda r: reading.send(r, sent, resume=True), after=after
        )
        self.expected.ended()
        if sent.admitted is not None:
            # The run is owed from the moment on at which the prompt is in the log.
            self.expected.wake(session_id)
        else:
            for one in held:
                one.held = True
        self.directory.open()
        if receipt is not None:
            self.expected.receipt(receipt)
        return sent.id

    # ---- running --------------------------------------------------------------------------------

    @rule(session_id=sessions)
    def interrupt(self, session_id: SessionID) -> None:
        """Ends what runs and waits for it; what is pending stays."""
        self.expected.look()
        begins = self.expected.may_begin(session_id)

        async def interrupt(runtime: Runtime) -> bool:
            ran = begins or session_id in runtime.sessions.active()
            await runtime.sessions.interrupt(session_id)
            return ran

        if self.directory.ask(interrupt):
            self.expected.look()
            self.expected.stop(session_id)
            self.expected.hold(session_id)

    @rule(session_id=sessions)
    def compact(self, session_id: SessionID) -> None:
        """The report says what the log says, and nothing is as large as before without a reason."""
        self.settle()
        before = len(self.log(session_id))
        try:
            report = self.directory.ask(lambda r: r.sessions.compact(session_id))
        except ServiceUnavailableError:
            # There is nothing to condense with: the model is missing, or says nothing.
            return
        new = [item.event for item in self.log(session_id)[before:]]
        pruned = sum(isinstance(event, events.ToolPruned) for event in new)
        ended = sum(isinstance(event, events.CompactionEnded) for event in new)
        match report.outcome:
            case "nothing":
                assert (pruned, ended) == (0, 0)
                assert report.reason
            case "pruned":
                assert (pruned, ended) == (report.results, 0)
                assert report.tokens_after < report.tokens_before
            case "summarised":
                assert (pruned, ended) == (0, 1)

    @rule(session_id=sessions, index=st.integers(0, 30), excluded=st.booleans())
    def exclude(self, session_id: SessionID, index: int, excluded: bool) -> None:
        """What is excluded is marked, and marked once; the model gets it never, or again."""
        ids = self.messages(session_id)
        if not ids:
            return
        message_id = ids[index % len(ids)]

        async def twice(runtime: Runtime) -> tuple[bytes, bytes]:
            change = runtime.changes.exclude
            first = await change(session_id, message_id, excluded=excluded)
            return first, await change(session_id, message_id, excluded=excluded)

        before = len(self.log(session_id))
        try:
            first, second = self.directory.ask(twice)
        except InvalidRequestError:
            # It tells the model of its context, or is not sent at all.
            return
        for shown in (first, second):
            assert ("excluded" in codec.decode_any(shown)["time"]) is excluded
        new = [item.event for item in self.log(session_id)[before:]]
        assert sum(isinstance(event, events.ExclusionEvent) for event in new) <= 1

    @rule(session_id=sessions, reply=st.sampled_from(("once", "reject")))
    def answer(self, session_id: SessionID, reply: str) -> None:
        """A person's word about whatever the Session waits for."""
        waited = self.directory.ask(
            lambda r: reading.answered(r, session_id, allow=reply == "once")
        )
        if waited and reply == "reject":
            # That stops the run; whether another was asked for meanwhile, only it knows.
            self.expected.look()
            self.expected.stop(session_id)

    @rule()
    def go_on(self) -> None:
        """The next operation meets every run a little further on.

        Of all rules Hypothesis draws the one with the fewest arguments that is first by name most
        often by far: it should be cheap, and not `restart`.
        """
        self.directory.go_on()

    @rule(seconds=st.sampled_from((0.01, 0.3, 1.5)))
    def pass_time(self, seconds: float) -> None:
        self.directory.pass_time(seconds)
        if self.directory.age > REST_SECONDS:
            self.expected.settled()

    @rule()
    def settle(self) -> None:
        """Everything ends, with a person who allows everything; then nothing may be left."""
        self.directory.pass_time(REST_SECONDS)
        continued = self.directory.ask(lambda r: reading.at_rest(r, tuple(self.expected.sessions)))
        for session_id in continued:
            self.expected.decide(session_id)
        self.expected.settled()
        self.expected.look()
        for session_id in self.expected.sessions:
            self.expected.check_rest(session_id)

    @rule()
    def restart(self) -> None:
        self.directory.close()
        self.expected.ended()
        self.directory.open()

    # ---- reverting ------------------------------------------------------------------------------

    @rule(session_id=sessions, back=st.integers(0, 4))
    def stage_revert(self, session_id: SessionID, back: int) -> None:
        self.expected.look()
        messages = tuple(self.expected.sessions[session_id].messages)
        chosen = messages[-1 - back] if back < len(messages) else MessageID("msg_unknown")
        before = len(self.log(session_id))
        begins = self.expected.may_begin(session_id)

        async def stage(runtime: Runtime) -> bool:
            runs = begins or session_id in runtime.sessions.active()
            try:
                await runtime.sessions.revert.stage(session_id, chosen)
            except SessionBusyError:
                assert runs, f"{session_id} was busy with nothing"
                return False
            except MessageNotFoundError:
                assert chosen not in messages
                return False
            return True

        if self.directory.ask(stage):
            assert chosen in messages
            assert self.info(session_id).revert is not None
        else:
            names = [type(item.event).__name__ for item in self.log(session_id)[before:]]
            assert "RevertStaged" not in names

    @rule(session_id=sessions, commit=st.booleans())
    def end_revert(self, session_id: SessionID, commit: bool) -> None:
        self.expected.look()
        staged = self.expected.sessions[session_id].reverting
        begins = self.expected.may_begin(session_id)
        if staged:
            self.expected.decide(session_id)

        async def end(runtime: Runtime) -> bool:
            runs = begins or session_id in runtime.sessions.active()
            revert = runtime.sessions.revert
            try:
                await (revert.commit(session_id) if commit else revert.clear(session_id))
            except SessionBusyError:
                assert runs, f"{session_id} was busy with nothing"
                return False
            return True

        if self.directory.ask(end) and staged:
            self.expected.look()
            self.expected.wake(session_id)

    # ---- reading --------------------------------------------------------------------------------

    @rule(limit=st.integers(1, 5), order=st.sampled_from(ORDERS))
    def list_sessions(self, limit: int, order: Order) -> None:
        found = self.directory.ask(lambda r: reading.session_pages(r, limit=limit, order=order))
        assert set(found) == set(self.expected.sessions)
        assert len(found) == len(self.expected.sessions)

    @rule(session_id=sessions, limit=st.integers(1, 6), order=st.sampled_from(ORDERS))
    def list_messages(self, session_id: SessionID, limit: int, order: Order) -> None:
        """Each once, in order; a Session that runs may have got more of them meanwhile."""
        before = self.messages(session_id)
        pages = reading.message_pages
        found = self.directory.ask(lambda r: pages(r, session_id, limit=limit, order=order))
        oldest_first = found if order == "asc" else found[::-1]
        assert reading.is_between(before, oldest_first, self.messages(session_id))
        shown = self.directory.ask(lambda r: r.sessions.context(session_id))
        ids = [MessageID(codec.decode_any(data)["id"]) for data in shown]
        assert ids == [one for one in self.messages(session_id) if one in set(ids)]

    @rule(session_id=sessions, limit=st.integers(1, 9), after=st.integers(-1, 30))
    def read_history(self, session_id: SessionID, limit: int, after: int) -> None:
        """P3, by pages and as a stream: exactly what comes after the cursor, once, in order."""
        before = self.expected.places(session_id, after=after)
        paged = self.directory.ask(
            lambda r: reading.history(r, session_id, after=after, limit=limit)
        )
        assert reading.is_between(before, paged, self.expected.places(session_id, after=after))
        until = paged[-1][0] if paged else Seq(0)
        streamed = self.directory.ask(
            lambda r: reading.streamed(r, session_id, after=after, until=until)
        )
        assert reading.is_between(paged, streamed, self.expected.places(session_id, after=after))

    # ---- small steps ----------------------------------------------------------------------------

    def log(self, session_id: SessionID) -> list[reading.LoggedEvent]:
        self.expected.look()
        return list(self.expected.sessions[session_id].log)

    def messages(self, session_id: SessionID) -> list[MessageID]:
        self.expected.look()
        return list(self.expected.sessions[session_id].messages)

    def info(self, session_id: SessionID) -> SessionInfo:
        data = self.directory.ask(lambda r: r.sessions.get(session_id))
        return codec.decode(SessionInfo, data)

    def write(self, session_id: SessionID, delivery: Delivery) -> Sent:
        self._numbers += 1
        message_id = MessageID(f"msg_{self._numbers:04d}")
        sent = Sent(message_id, session_id, f"prompt {self._numbers}", delivery)
        self.expected.sent[message_id] = sent
        return sent

    def send(self, sent: Sent, *, resume: bool) -> None:
        async def send(runtime: Runtime) -> tuple[AdmittedPrompt, bool]:
            idle = sent.session_id not in runtime.sessions.active()
            return await reading.send(runtime, sent, resume=resume), idle

        self.expected.look()
        new = sent.admitted is None
        if resume and sent.promoted is None:
            self.expected.wake(sent.session_id)
        elif not resume and self.expected.sessions[sent.session_id].reverting:
            # It ends the revert, and asks for no run.
            self.expected.stop(sent.session_id)
        receipt, idle = self.directory.ask(send)
        self.expected.receipt(receipt)
        sent.due = sent.due or (resume and sent.admitted is not None)
        # It is not known when a Session that runs, or is about to, reads its inbox.
        sent.held = sent.held or (new and idle and not resume and not self.expected.settling)
