"""The PermissionGate: who waits, who is let through, and what a reply settles besides."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from perdure.core import limits
from perdure.location.approval.approvals import LocationApprovals
from perdure.location.approval.location_rules import LocationRules
from perdure.location.approval.permissions import Headless, LocationPermissions
from perdure.location.approval.permissions import PendingPermissions as State
from perdure.location.approval.stores import NoPendingStore, PendingStore
from perdure.ports import (
    DatabaseError,
    PermissionAsk,
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
    UniqueViolationError,
)
from perdure.schema.approval.pending import (
    PendingRequest,
    PendingWord,
    PermissionWord,
    StoredRequest,
)
from perdure.schema.approval.permission import (
    ApprovalScope,
    Reply,
    Rule,
    Ruleset,
    SavedPlace,
    SavedRule,
)
from perdure.schema.errors import PermissionConflictError, PermissionNotFoundError
from perdure.schema.ids import PermissionID, ProjectID, SessionID
from perdure.schema.live_event import LiveEvent, PermissionReplied
from perdure.testing import ManualClock, SeededIds
from tests.support.memory_saved_rules import MemorySavedRules

ONE, TWO = SessionID("ses_one"), SessionID("ses_two")
SCOPE = ApprovalScope(session_id=ONE, agent="build")
PROJECT = ProjectID("project")
HERE = SavedPlace(PROJECT, "here", "/here")
RULES: dict[str, Ruleset] = {
    "build": (Rule("*", "*", "ask"), Rule("read", "*", "allow"), Rule("edit", "*", "deny")),
    "loose": (Rule("*", "*", "allow"),),
}


async def find_place() -> SavedPlace:
    return HERE


async def no_place() -> None:
    return None


def bash(command: str, *, session: SessionID = ONE, agent: str = "build") -> PermissionAsk:
    return PermissionAsk(
        session_id=session, agent=agent, action="bash", resources=(command,), save=(command,)
    )


@dataclass(frozen=True)
class Waiting:
    task: asyncio.Task[str]
    id: PermissionID


class Desk:
    """A desk with a record of what it announced."""

    def __init__(
        self,
        *,
        headless: Headless = "wait",
        saved: MemorySavedRules | None = None,
        reply_timeout_seconds: float | None = None,
        book: PendingStore | None = None,
        place: Callable[[], Awaitable[SavedPlace | None]] = find_place,
    ) -> None:
        self.events: list[LiveEvent] = []
        self.clock = ManualClock()
        self.announced = asyncio.Event()
        self.saved = saved or MemorySavedRules(SeededIds())
        self.permissions = LocationPermissions(
            rules=LocationRules(lambda agent: RULES[agent]),
            approvals=LocationApprovals(self.saved, place=place, clock=self.clock),
            ids=SeededIds(),
            publish=self._publish,
            headless=headless,
            reply_timeout_seconds=reply_timeout_seconds,
            shared=State(store=book or NoPendingStore()),
        )

    def _publish(self, event: LiveEvent) -> None:
        self.events.append(event)
        self.announced.set()

    def replies(self) -> list[str]:
        return [event.reply for event in self.events if isinstance(event, PermissionReplied)]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                self.announced.clear()
                await self.announced.wait()

    async def outcome(self, ask: PermissionAsk) -> str:
        """How a call that needs this permission goes on."""
        try:
            await self.permissions.require(ask)
        except PermissionDeclinedError:
            return "declined"
        except PermissionBlockedError as error:
            return f"blocked: {error}"
        except PermissionCorrectedError as error:
            return f"corrected: {error}"
        return "allowed"

    async def pending(self, group: asyncio.TaskGroup, ask: PermissionAsk) -> Waiting:
        """A call that waits now."""
        count = len(self.permissions.list()) + 1
        task = group.create_task(self.outcome(ask))
        await self.until(lambda: len(self.permissions.list()) == count)
        return Waiting(task, self.permissions.list()[-1].id)


@pytest.fixture
async def group() -> AsyncGenerator[asyncio.TaskGroup]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        yield tasks


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_what_the_rules_decide_needs_nobody(desk: Desk) -> None:
    read = PermissionAsk(session_id=ONE, agent="build", action="read", resources=("a", "b"))
    edit = PermissionAsk(session_id=ONE, agent="build", action="edit", resources=("a",))
    assert await desk.outcome(read) == "allowed"
    denial = await desk.outcome(edit)
    assert denial.startswith("blocked: ")
    assert "edit *" in denial
    assert desk.events == []


async def test_a_request_is_announced_listed_and_answered_once(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    call = await desk.pending(group, bash("ls"))
    (request,) = desk.permissions.list()
    assert request.id == call.id
    assert desk.events == [request]
    assert (request.action, request.resources, request.save) == ("bash", ("ls",), ("ls",))
    assert desk.permissions.list(TWO) == ()
    await desk.permissions.reply(call.id, PermissionWord(reply="once"))
    assert await call.task == "allowed"
    assert desk.replies() == ["once"]
    for settled in (call.id, PermissionID("per_never")):
        with pytest.raises(PermissionNotFoundError) as caught:
            await desk.permissions.reply(settled, PermissionWord(reply="once"))
        assert caught.value.wire()["requestID"] == settled
    assert await desk.saved.list(PROJECT) == ()


async def test_the_reply_is_announced_before_the_waiter_goes_on(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    call = await desk.pending(group, bash("ls"))
    await desk.permissions.reply(call.id, PermissionWord(reply="once"))
    assert desk.replies() == ["once"]
    assert not call.task.done()


async def test_always_is_remembered_and_lets_others_through_that_it_covers(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    first = await desk.pending(group, bash("git status"))
    same_elsewhere = await desk.pending(group, bash("git status", session=TWO))
    other = await desk.pending(group, bash("git push"))
    await desk.permissions.reply(first.id, PermissionWord(reply="always"))
    assert [await first.task, await same_elsewhere.task] == ["allowed", "allowed"]
    assert desk.replies() == ["always", "always"]
    assert [request.id for request in desk.permissions.list()] == [other.id]
    assert await desk.outcome(bash("git status")) == "allowed"
    [rule] = await desk.saved.list(PROJECT)
    assert (rule.action, rule.resource) == ("bash", "git status")
    await desk.permissions.reply(other.id, PermissionWord(reply="once"))


async def test_always_without_anything_to_remember_is_once(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    ask = PermissionAsk(session_id=ONE, agent="build", action="question", resources=("*",))
    call = await desk.pending(group, ask)
    await desk.permissions.reply(call.id, PermissionWord(reply="always"))
    assert await call.task == "allowed"
    assert await desk.saved.list(PROJECT) == ()


async def test_what_was_approved_for_good_never_overrides_a_denial(desk: Desk) -> None:
    await desk.saved.add(HERE, SCOPE, action="*", resources=("*",))
    edit = PermissionAsk(session_id=ONE, agent="build", action="edit", resources=("a",))
    assert (await desk.outcome(edit)).startswith("blocked")
    assert await desk.outcome(bash("anything")) == "allowed"


def protected(agent: str = "loose") -> PermissionAsk:
    return PermissionAsk(
        session_id=ONE, agent=agent, action="edit", resources=("opencode.json",), protected=True
    )


async def test_about_what_is_protected_no_rule_and_no_earlier_word_says_yes(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    await desk.saved.add(HERE, SCOPE, action="*", resources=("*",))
    call = await desk.pending(group, protected())
    another = await desk.pending(group, protected())
    await desk.permissions.reply(call.id, PermissionWord(reply="always"))
    assert await call.task == "allowed"
    assert [request.id for request in desk.permissions.list()] == [another.id]
    await desk.permissions.reply(another.id, PermissionWord(reply="once"))
    assert await another.task == "allowed"


async def test_a_denial_holds_for_what_is_protected_and_nobody_there_means_no(
    desk: Desk,
) -> None:
    assert (await desk.outcome(protected("build"))).startswith("blocked: Denied by the rule")
    refusal = await Desk(headless="deny").outcome(protected())
    assert "only a rule that names it would let it pass" in refusal


async def test_rejecting_stops_everything_that_waits_in_the_same_session(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    first = await desk.pending(group, bash("one"))
    second = await desk.pending(group, bash("two"))
    elsewhere = await desk.pending(group, bash("three", session=TWO))
    await desk.permissions.reply(first.id, PermissionWord(reply="reject"))
    assert [await first.task, await second.task] == ["declined", "declined"]
    assert desk.replies() == ["reject", "reject"]
    assert [request.id for request in desk.permissions.list()] == [elsewhere.id]
    await desk.permissions.reply(elsewhere.id, PermissionWord(reply="once"))


async def test_rejecting_with_words_gives_them_to_the_model_and_stops_the_others(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    first = await desk.pending(group, bash("one"))
    second = await desk.pending(group, bash("two"))
    await desk.permissions.reply(
        first.id, PermissionWord(reply="reject", message="use make instead")
    )
    assert [await first.task, await second.task] == ["corrected: use make instead", "declined"]


async def test_a_call_that_is_interrupted_takes_its_request_with_it(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    call = await desk.pending(group, bash("ls"))
    call.task.cancel()
    await asyncio.wait([call.task])
    assert desk.permissions.list() == ()
    assert not desk.permissions.waiting
    with pytest.raises(PermissionNotFoundError):
        await desk.permissions.reply(call.id, PermissionWord(reply="once"))


async def test_closing_the_location_declines_whoever_waits(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    calls = [await desk.pending(group, bash(name)) for name in ("one", "two")]
    desk.permissions.close()
    assert [await call.task for call in calls] == ["declined", "declined"]


async def test_where_nobody_watches_a_question_is_a_clear_refusal() -> None:
    desk = Desk(headless="deny")
    refusal = await desk.outcome(bash("make"))
    assert refusal.startswith("blocked: bash make needs a person's approval")
    assert desk.events == []


async def test_asking_without_waiting_says_what_would_happen(desk: Desk) -> None:
    loose = await desk.permissions.ask(bash("ls", agent="loose"))
    assert loose.effect == "allow"
    assert desk.permissions.list() == ()
    asked = await desk.permissions.ask(bash("ls"), request_id=PermissionID("per_mine"))
    assert (asked.id, asked.effect) == ("per_mine", "ask")
    with pytest.raises(PermissionConflictError):
        await desk.permissions.ask(bash("ls"), request_id=PermissionID("per_mine"))
    await desk.permissions.reply(asked.id, PermissionWord(reply="reject"))
    assert desk.permissions.list() == ()


async def test_a_flood_of_requests_is_refused_and_harms_none_that_wait(desk: Desk) -> None:
    for _ in range(limits.PERMISSIONS_PENDING_MAX):
        await desk.permissions.ask(bash("ls"))
    assert (await desk.outcome(bash("ls"))).startswith("blocked: Too many")
    assert len(desk.permissions.list()) == limits.PERMISSIONS_PENDING_MAX


async def test_a_request_that_cannot_be_announced_is_not_left_behind() -> None:
    def broken(_: LiveEvent) -> None:
        raise ConnectionError

    permissions = LocationPermissions(
        rules=LocationRules(lambda agent: RULES[agent]),
        approvals=LocationApprovals(
            MemorySavedRules(SeededIds()), place=find_place, clock=ManualClock()
        ),
        ids=SeededIds(),
        publish=broken,
    )
    with pytest.raises(ConnectionError):
        await permissions.require(bash("ls"))
    assert permissions.list() == ()


class GatedSavedRules(MemorySavedRules):
    """A slow disk: reading and adding wait at a gate that the test opens."""

    def __init__(self) -> None:
        super().__init__(SeededIds())
        self.reading = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.fails = False

    async def list_applying(
        self, place: str, *, session_id: SessionID, agent: str, now: int
    ) -> tuple[SavedRule, ...]:
        found = await super().list_applying(place, session_id=session_id, agent=agent, now=now)
        self.reading.set()
        await self.go_on.wait()
        return found

    async def add(
        self, place: SavedPlace, scope: ApprovalScope, *, action: str, resources: tuple[str, ...]
    ) -> None:
        if self.fails:
            raise DatabaseError("disk full")
        await super().add(place, scope, action=action, resources=resources)


async def test_an_approval_given_while_the_rules_are_read_still_counts(
    group: asyncio.TaskGroup,
) -> None:
    saved = GatedSavedRules()
    desk = Desk(saved=saved)
    first = await desk.pending(group, bash("make"))
    saved.go_on.clear()
    saved.reading.clear()
    late = group.create_task(desk.outcome(bash("make")))
    await saved.reading.wait()
    await desk.permissions.reply(first.id, PermissionWord(reply="always"))
    saved.go_on.set()
    assert [await first.task, await late] == ["allowed", "allowed"]


async def test_an_approval_that_cannot_be_kept_leaves_the_request_waiting(
    group: asyncio.TaskGroup,
) -> None:
    saved = GatedSavedRules()
    desk = Desk(saved=saved)
    call = await desk.pending(group, bash("make"))
    saved.fails = True
    with pytest.raises(DatabaseError):
        await desk.permissions.reply(call.id, PermissionWord(reply="always"))
    assert desk.replies() == []
    await desk.permissions.reply(call.id, PermissionWord(reply="once"))
    assert await call.task == "allowed"


async def test_an_approval_is_kept_once_and_can_be_forgotten() -> None:
    saved = MemorySavedRules(SeededIds())
    await saved.add(HERE, SCOPE, action="bash", resources=("a", "a", "b"))
    await saved.add(HERE, SCOPE, action="bash", resources=("a",))
    rules = await saved.list(PROJECT)
    assert [rule.resource for rule in rules] == ["a", "b"]
    assert await saved.list(ProjectID("other")) == ()
    await saved.remove(rules[0].id)
    await saved.remove("psv_unknown")
    assert [rule.resource for rule in await saved.list(PROJECT)] == ["b"]


# ---- what is written down -----------------------------------------------------------------------


@dataclass
class Book:
    """In memory; `gate` holds each write."""

    written: list[str] = field(default_factory=list[str])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    taken: set[str] = field(default_factory=set[str])
    used: list[str] = field(default_factory=list[str])
    left: StoredRequest | None = None
    """What an earlier process left of the call."""

    async def add(self, request: PendingRequest) -> None:
        if request.id in self.taken:
            raise UniqueViolationError(request.id)
        self.written.append(request.id)
        self.reached.set()
        await self.gate.wait()

    async def remove(self, ids: Sequence[str]) -> None:
        self.written = [item for item in self.written if item not in ids]

    async def adopt(self, request: PendingRequest) -> StoredRequest | None:
        return self.left

    async def claim(self, request_id: str) -> PendingWord | None:
        return None

    async def use(self, request_id: str) -> None:
        self.used.append(request_id)


@pytest.fixture
def book() -> Book:
    book = Book()
    book.gate.set()
    return book


async def test_a_request_is_written_down_before_anybody_hears_of_it(
    book: Book, group: asyncio.TaskGroup
) -> None:
    book.gate.clear()
    desk = Desk(book=book)
    task = group.create_task(desk.outcome(bash("ls")))
    await book.reached.wait()
    assert (desk.events, desk.permissions.list()) == ([], ())
    book.gate.set()
    await desk.until(lambda: bool(desk.events))
    await desk.permissions.reply(PermissionID(book.written[0]), PermissionWord(reply="once"))
    assert (await task, book.written) == ("allowed", [])


@pytest.mark.parametrize("word", ["once", "always", "reject"])
async def test_whatever_the_word_is_nothing_stays_written_down(
    book: Book, group: asyncio.TaskGroup, word: Reply
) -> None:
    desk = Desk(book=book)
    waiting = [await desk.pending(group, bash("ls")) for _ in range(3)]
    await desk.permissions.ask(bash("ls"), request_id=PermissionID("per_mine"))
    assert len(book.written) == 4
    for request in desk.permissions.list():
        if desk.permissions.has(request.id, ONE):
            await desk.permissions.reply(request.id, PermissionWord(reply=word))
    assert book.written == []
    assert {await call.task for call in waiting} <= {"allowed", "declined"}


async def test_an_interrupted_call_leaves_nothing_written_down_and_everybody_is_told(
    book: Book, group: asyncio.TaskGroup
) -> None:
    desk = Desk(book=book)
    call = await desk.pending(group, bash("ls"))
    call.task.cancel()
    await asyncio.wait([call.task])
    assert (book.written, desk.replies()) == ([], ["reject"])
    book.gate.clear()
    book.reached.clear()
    early = group.create_task(desk.outcome(bash("ls")))
    await book.reached.wait()
    early.cancel()
    await asyncio.wait([early])
    assert (book.written, desk.replies(), desk.permissions.list()) == ([], ["reject"], ())


async def test_an_id_that_waits_anywhere_is_taken(book: Book) -> None:
    book.taken.add("per_mine")
    desk = Desk(book=book)
    with pytest.raises(PermissionConflictError):
        await desk.permissions.ask(bash("ls"), request_id=PermissionID("per_mine"))
    assert (desk.events, desk.permissions.list(), book.written) == ([], (), [])


async def test_a_person_is_waited_for_only_so_long(book: Book) -> None:
    desk = Desk(reply_timeout_seconds=0.01, book=book)
    said = await desk.outcome(bash("make"))
    assert said == "blocked: bash make needs a person's approval, and nobody answered in time."
    assert (desk.replies(), desk.permissions.list(), book.written) == (["reject"], (), [])


async def test_an_answer_in_time_is_an_answer(group: asyncio.TaskGroup) -> None:
    desk = Desk(reply_timeout_seconds=60)
    call = await desk.pending(group, bash("make"))
    await desk.permissions.reply(call.id, PermissionWord(reply="once"))
    assert await call.task == "allowed"


async def test_an_always_reaches_as_far_and_as_long_as_it_says(group: asyncio.TaskGroup) -> None:
    desk = Desk()
    call = await desk.pending(group, bash("make"))
    word = PermissionWord(reply="always", scope="session", seconds=60)
    await desk.permissions.reply(call.id, word)
    assert await call.task == "allowed"
    assert await desk.outcome(bash("make")) == "allowed"
    assert await desk.permissions.evaluate(bash("make", session=TWO)) == "ask"
    desk.clock.advance(60)
    assert await desk.permissions.evaluate(bash("make")) == "ask"


async def test_where_the_place_cannot_be_looked_at_nothing_is_remembered(
    group: asyncio.TaskGroup,
) -> None:
    desk = Desk(place=no_place)
    call = await desk.pending(group, bash("make"))
    await desk.permissions.reply(call.id, PermissionWord(reply="always"))
    assert await call.task == "allowed"
    assert await desk.permissions.evaluate(bash("make")) == "ask"
    assert await desk.saved.list(PROJECT) == ()
