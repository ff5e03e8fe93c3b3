"""The algebra of System Context: what is told at first, what later, and what never."""

import pytest

from perdure.core.context import system_context
from perdure.core.context.system_context import (
    UNAVAILABLE,
    ContextError,
    ContextSource,
    Generation,
    InitializationBlocked,
    Observation,
    Observed,
    ReplacementBlocked,
    ReplacementReady,
    Snapshot,
    SnapshotDecodeError,
    SnapshotEntry,
    Unavailable,
    Unchanged,
    Updated,
)
from perdure.schema.codec import Record
from tests.requirements import requirement


class Files(Record):
    paths: tuple[str, ...]


DATE = ContextSource(
    key="core/date",
    type=str,
    baseline=lambda day: f"Today is {day}.",
    update=lambda _, day: f"Today is now {day}.",
)
FILES = ContextSource(
    key="core/instructions",
    type=Files,
    baseline=lambda files: "Read " + ", ".join(files.paths),
    update=lambda _, files: "Read instead " + ", ".join(files.paths),
    removed=lambda files: f"No longer read {len(files.paths)} files",
)


def date(day: str | Unavailable) -> Observed:
    return system_context.make(DATE, day)


def files(*paths: str) -> Observed:
    return system_context.make(FILES, Files(paths))


def never(*_: object) -> str:
    raise AssertionError("rendered a text that was not needed")


def unseen(key: str) -> Observed:
    source = ContextSource(key=key, type=str, baseline=never, update=never)
    return system_context.make(source, UNAVAILABLE)


def begun(*observation: Observed) -> Snapshot:
    generation = system_context.initialize(observation)
    assert isinstance(generation, Generation)
    return generation.snapshot


@requirement("S1", "S7", "S34", "S41", "S56")
def test_the_first_baseline_is_every_text_joined_by_a_blank_line() -> None:
    generation = system_context.initialize((date("Monday"), files("a", "b")))
    assert isinstance(generation, Generation)
    assert generation.baseline == "Today is Monday.\n\nRead a, b"


@requirement("S30", "S8")
def test_the_snapshot_keeps_json_values_and_what_to_say_on_removal() -> None:
    assert begun(date("Monday"), files("a")) == {
        "core/date": SnapshotEntry(value="Monday"),
        "core/instructions": SnapshotEntry(
            value={"paths": ["a"]}, removed="No longer read 1 files"
        ),
    }


@requirement("S34", "S9")
def test_anything_unseen_blocks_the_first_baseline_and_is_named() -> None:
    blocked = system_context.initialize((unseen("core/one"), date("Monday"), unseen("x/two")))
    assert blocked == InitializationBlocked(("core/one", "x/two"))


@requirement("S24")
def test_no_sources_make_an_empty_baseline_and_never_change() -> None:
    assert system_context.initialize(()) == Generation("", {})
    assert system_context.reconcile((), {}) == Unchanged()
    both = (date("Monday"),)
    assert system_context.combine((), both, ()) == both


@requirement("S38")
@pytest.mark.parametrize(
    "key", ["", "date", "core/", "/date", "Core/date", "core/Date", "co re/x", "core/x\n", "é/x"]
)
def test_a_key_without_a_namespace_is_refused(key: str) -> None:
    with pytest.raises(ContextError, match="namespace"):
        ContextSource(key=key, type=str, baseline=str, update=never)


@requirement("S38")
def test_a_repeated_key_is_refused_when_composing() -> None:
    with pytest.raises(ContextError, match="core/date"):
        system_context.combine((date("Monday"),), (files("a"), date("Tuesday")))


@requirement("S39")
def test_composing_keeps_the_given_order() -> None:
    joined = system_context.combine((files("a"),), (unseen("a/a"),), (date("Monday"),))
    assert [observed.key for observed in joined] == ["core/instructions", "a/a", "core/date"]


@requirement("S42")
def test_what_is_the_same_changes_nothing_and_renders_nothing() -> None:
    quiet = ContextSource(key="core/date", type=str, baseline=never, update=never, removed=never)
    observation = (system_context.make(quiet, "Monday"),)
    assert system_context.reconcile(observation, begun(date("Monday"))) == Unchanged()


@requirement("S27", "S31", "S42", "S53")
def test_all_changes_of_a_boundary_make_one_text_with_what_now_holds() -> None:
    changed = system_context.reconcile(
        (date("Tuesday"), files("a", "c")), begun(date("Monday"), files("a"))
    )
    assert isinstance(changed, Updated)
    assert changed.text == "Today is now Tuesday.\n\nRead instead a, c"
    assert changed.snapshot == begun(date("Tuesday"), files("a", "c"))


@requirement("S37")
def test_a_source_that_is_new_is_told_once_by_its_baseline() -> None:
    observation = (date("Monday"), files("a"))
    told = system_context.reconcile(observation, begun(date("Monday")))
    assert isinstance(told, Updated)
    assert told.text == "Read a"
    assert system_context.reconcile(observation, told.snapshot) == Unchanged()


@requirement("S9", "S44")
def test_what_cannot_be_seen_now_keeps_what_was_said_last() -> None:
    snapshot = begun(date("Monday"), files("a"))
    told = system_context.reconcile((unseen("core/date"), files("b")), snapshot)
    assert isinstance(told, Updated)
    assert told.text == "Read instead b"
    assert told.snapshot["core/date"] is snapshot["core/date"]


@requirement("S9")
def test_what_is_new_and_cannot_be_seen_is_left_out_until_it_can() -> None:
    snapshot = begun(date("Monday"))
    assert system_context.reconcile((date("Monday"), unseen("x/new")), snapshot) == Unchanged()
    told = system_context.reconcile((date("Tuesday"), unseen("x/new")), snapshot)
    assert isinstance(told, Updated)
    assert "x/new" not in told.snapshot


@requirement("S44", "S26")
def test_what_is_gone_is_told_with_the_text_that_was_kept_for_it() -> None:
    gone = system_context.reconcile((date("Monday"),), begun(date("Monday"), files("a", "b")))
    assert gone == Updated("No longer read 2 files", begun(date("Monday")))


@requirement("S26")
def test_removals_come_last_in_the_order_of_their_keys() -> None:
    snapshot: Snapshot = {
        "z/z": SnapshotEntry(value=1, removed="z is gone"),
        "a/a": SnapshotEntry(value=1, removed="a is gone"),
        **begun(date("Monday")),
    }
    told = system_context.reconcile((date("Tuesday"),), snapshot)
    assert isinstance(told, Updated)
    assert told.text == "Today is now Tuesday.\n\na is gone\n\nz is gone"


@requirement("S42", "S6", "S43")
def test_losing_a_source_that_cannot_be_taken_back_starts_over() -> None:
    fresh = system_context.reconcile((files("a"),), begun(date("Monday"), files("a")))
    assert fresh == ReplacementReady(Generation("Read a", begun(files("a"))))


@requirement("S42", "S6", "S43")
def test_a_stored_value_of_another_shape_starts_over() -> None:
    snapshot: Snapshot = {"core/instructions": SnapshotEntry(value="from an older version")}
    assert system_context.reconcile((files("a"),), snapshot) == ReplacementReady(
        Generation("Read a", begun(files("a")))
    )


@requirement("S40")
def test_an_update_that_a_replacement_makes_void_is_never_rendered() -> None:
    careful = ContextSource(key="core/date", type=str, baseline=DATE.baseline, update=never)
    snapshot: Snapshot = {
        "core/date": SnapshotEntry(value="Monday"),
        "core/instructions": SnapshotEntry(value=17),
    }
    observation = (system_context.make(careful, "Tuesday"), files("a"))
    assert isinstance(system_context.reconcile(observation, snapshot), ReplacementReady)


@requirement("S42", "S43")
def test_starting_over_waits_for_what_was_admitted_and_cannot_be_seen() -> None:
    snapshot = begun(date("Monday"), files("a"))
    blocked = ReplacementBlocked(("core/instructions",))
    assert system_context.reconcile((unseen("core/instructions"),), snapshot) == blocked
    observation = (date("Monday"), unseen("core/instructions"))
    assert system_context.replace(observation, snapshot) == blocked


@requirement("S43", "S45")
def test_starting_over_leaves_out_what_was_never_admitted_and_cannot_be_seen() -> None:
    observation: Observation = (date("Tuesday"), unseen("x/new"))
    fresh = system_context.replace(observation, begun(date("Monday")))
    assert fresh == ReplacementReady(Generation("Today is Tuesday.", begun(date("Tuesday"))))


@requirement("S3", "S40")
@pytest.mark.parametrize("blank", ["", " ", "\n\n"])
def test_a_source_that_says_nothing_is_a_mistake(blank: str) -> None:
    mute = ContextSource(
        key="x/mute", type=str, baseline=lambda _: blank, update=lambda _, __: blank, removed=str
    )
    observed = system_context.make(mute, "new")
    with pytest.raises(ContextError, match="x/mute"):
        system_context.initialize((observed,))
    with pytest.raises(ContextError, match="x/mute"):
        system_context.reconcile((observed,), {"x/mute": SnapshotEntry(value="old")})


@requirement("S3")
def test_a_removal_text_must_say_something() -> None:
    mute = ContextSource(key="x/m", type=str, baseline=str, update=never, removed=lambda _: "")
    with pytest.raises(ContextError, match="x/m"):
        system_context.initialize((system_context.make(mute, "v"),))


@requirement("S8", "S30")
def test_a_snapshot_survives_being_stored() -> None:
    snapshot = begun(date("Mon\u2028day ☃"), files("a", "b"))
    assert system_context.decode_snapshot(system_context.encode_snapshot(snapshot)) == snapshot


@requirement("S30")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"core/date":{}}',
        '{"core/date":{"value":1,"removed":""}}',
        '{"core/date":{"value":1,"removed":2}}',
        '{"date":{"value":1}}',
        '{"core/date":{"value":1}',
    ],
)
def test_a_damaged_snapshot_is_refused_rather_than_guessed(text: str) -> None:
    with pytest.raises(SnapshotDecodeError):
        system_context.decode_snapshot(text)
