"""One change at a time for each path, based on what is still there."""

import asyncio
from pathlib import Path

import pytest

from perdure.host.files.filesystem import LocalFilesystem
from perdure.tools.files.mutation import FileMutations, StaleContentError
from perdure.tools.files.path_access import Target
from tests.requirements import requirement


@pytest.fixture
def mutations() -> FileMutations:
    return FileMutations(LocalFilesystem())


@requirement("S175")
@pytest.mark.parametrize("now", [b"", b"changed", b"read and more", None])
async def test_a_file_that_is_not_what_was_read_is_left_alone(
    mutations: FileMutations, tmp_path: Path, now: bytes | None
) -> None:
    path = tmp_path / "f"
    if now is not None:
        path.write_bytes(now)
    target = Target(path=str(path), root=str(tmp_path), resource="f", external=False)
    with pytest.raises(StaleContentError):
        await mutations.replace_if_unchanged(target, read=b"read", data=b"new")
    with pytest.raises(StaleContentError):
        await mutations.remove_if_unchanged(target, read=b"read")
    assert (path.read_bytes() if path.exists() else None) == now


async def test_changes_of_one_path_wait_for_each_other_and_others_do_not(
    mutations: FileMutations,
) -> None:
    order: list[str] = []
    entered, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with mutations.locked("/a"):
            entered.set()
            await leave.wait()
            order.append("first")

    async def second() -> None:
        async with mutations.locked("/a"):
            order.append("second")

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(first())
        await entered.wait()
        group.create_task(second())
        async with mutations.locked("/b"):
            order.append("other")
        leave.set()
    assert order == ["other", "first", "second"]


async def test_a_waiter_that_gives_up_leaves_the_path_usable(mutations: FileMutations) -> None:
    async def wait() -> None:
        async with mutations.locked("/a"):
            raise AssertionError("the path was taken")

    async with asyncio.TaskGroup() as group, mutations.locked("/a"):
        waiting = group.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
    async with asyncio.timeout(5), mutations.locked("/a"):
        pass
