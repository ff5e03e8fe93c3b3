"""Which files a revert moves, and which it leaves to whoever changed them."""

import pytest

from perdure.core.files import file_state, revert
from perdure.core.files.file_state import ABSENT, OTHER, UNKNOWN, FileState
from perdure.core.files.revert import Conflict, FileChange, Move, RevertPlan, StagedFile


def held(content: str, mode: int | None = 0o644) -> FileState:
    return FileState("file", file_state.digest_of(content.encode()), mode)


A, B, C, D = (held(name) for name in "abcd")


def change(before: FileState, after: FileState) -> FileChange:
    return FileChange(root="/p", path="/p/f", before=before, after=after)


def planned(
    *changes: FileChange, now: FileState, staged: tuple[FileState, FileState] | None = None
) -> RevertPlan:
    items: dict[str, StagedFile] = {}
    if staged is not None:
        base, left = staged
        items = {"/p/f": StagedFile(root="/p", path="/p/f", base=base, staged=left)}
    return revert.plan_revert(changes, items, {"/p/f": now})


def move(base: FileState, found: FileState, wanted: FileState) -> RevertPlan:
    return RevertPlan((Move(root="/p", path="/p/f", base=base, found=found, wanted=wanted),))


def conflict(reason: str) -> RevertPlan:
    return RevertPlan((), (Conflict("/p/f", reason),))


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        # The Session's own work goes back to before its first change.
        ((change(A, B),), B, move(B, B, A)),
        ((change(A, B), change(B, C)), C, move(C, C, A)),
        ((change(ABSENT, B),), B, move(B, B, ABSENT)),
        ((change(A, ABSENT),), ABSENT, move(ABSENT, ABSENT, A)),
        # It is there already.
        ((change(A, B),), A, RevertPlan()),
        ((change(A, B), change(B, A)), A, RevertPlan()),
        # Noted and never made: the process died in between.
        ((change(A, B), change(B, C)), B, move(B, B, A)),
        # Somebody else's work stays.
        ((change(A, B),), C, conflict(revert.CHANGED_SINCE)),
        ((change(A, B),), ABSENT, conflict(revert.CHANGED_SINCE)),
        ((change(A, B),), OTHER, conflict(revert.CHANGED_SINCE)),
        ((change(A, B),), UNKNOWN, conflict(revert.CHANGED_SINCE)),
        ((change(A, B), change(C, D)), D, conflict(revert.CHANGED_BETWEEN)),
        ((change(ABSENT, B), change(ABSENT, C)), C, conflict(revert.CHANGED_BETWEEN)),
        # What is not kept cannot come back.
        ((change(UNKNOWN, B),), B, conflict(revert.NOT_KEPT)),
        ((change(OTHER, B),), B, conflict(revert.NOT_KEPT)),
        ((change(A, UNKNOWN),), UNKNOWN, conflict(revert.CHANGED_SINCE)),
    ],
)
def test_a_path_goes_back_only_from_what_the_session_left(
    changes: tuple[FileChange, ...], now: FileState, expected: RevertPlan
) -> None:
    assert planned(*changes, now=now) == expected


def test_permissions_count_where_they_are_known() -> None:
    executable = held("b", 0o755)
    made = change(ABSENT, held("b", None))
    assert planned(made, now=executable) == move(executable, executable, ABSENT)
    assert planned(change(A, B), now=executable) == conflict(revert.CHANGED_SINCE)
    assert planned(change(B, executable), now=executable) == move(executable, executable, B)


def test_staging_again_starts_from_what_was_there_before_the_first_time() -> None:
    both = (change(A, B), change(B, C))
    # From a later boundary to an earlier one, and back to none.
    assert planned(*both, now=B, staged=(C, B)) == move(C, B, A)
    assert planned(now=A, staged=(C, A)) == move(C, A, C)
    assert planned(now=C, staged=(C, A)) == move(C, C, C)
    assert planned(*both, now=D, staged=(C, B)) == conflict(revert.CHANGED_STAGED)
    # What cannot be judged any more goes to its base, and is told.
    broken = (change(A, B), change(D, C))
    assert planned(*broken, now=A, staged=(C, A)) == RevertPlan(
        move(C, A, C).moves, conflict(revert.CHANGED_BETWEEN).conflicts
    )


@pytest.mark.parametrize("state", [A, held("x", None), held("y", 0), ABSENT, OTHER, UNKNOWN])
def test_a_state_is_read_as_it_was_written(state: FileState) -> None:
    assert file_state.decode(file_state.encode(state)) == state


@pytest.mark.parametrize("text", ["", "folder", "file644 x"])
def test_a_damaged_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the state"):
        file_state.decode(text)


def test_the_name_of_a_snapshot_depends_on_every_change() -> None:
    one = revert.next_snapshot("", change(A, B))
    assert len(one) == 40
    assert (
        len({one, revert.next_snapshot("", change(A, C)), revert.next_snapshot(one, change(A, B))})
        == 3
    )
