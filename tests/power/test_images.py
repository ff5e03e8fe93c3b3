"""Power is lost at any moment: what was acknowledged is there, all else is whole or not at all."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.figures import Figure
from tests.harness.faults import disk_image
from tests.harness.faults.recording_vfs import (
    Create,
    Delete,
    FailedSync,
    Mark,
    Sync,
    Truncate,
    Write,
)
from tests.power import images
from tests.power.images import BrokenImageError

SHARDS: Final = 8


@pytest.mark.timeout(max(60, images.IMAGES // 20))
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_acknowledged_admission_survives_a_power_loss(shard: int, figure: Figure) -> None:
    # Processes together: they are often the same, and each is drawn from the one before.
    size = images.IMAGES // SHARDS
    for number in range(shard * size, (shard + 1) * size):
        images.check(number)
    figure("power-loss images", size)


def test_every_operation_of_the_recording_is_the_last_of_some_image() -> None:
    assert len(images.recorded().operations) <= images.IMAGES
    assert images.IMAGES % SHARDS == 0


def test_without_syncs_the_same_look_finds_losses_and_damage() -> None:
    broken: list[int] = []
    for number in range(0, images.IMAGES, 50):
        try:
            images.check(number, synced=False)
        except BrokenImageError:
            broken.append(number)
    assert len(broken) > 10


def test_the_recording_has_every_kind_of_moment_in_it() -> None:
    operations = images.recorded().operations
    kinds = Counter(type(operation) for operation in operations)
    assert {Write, Truncate, Sync, Create, Delete, Mark} <= kinds.keys()
    # The log is begun anew by writing its header: checkpoints and restarts happened in between.
    headers = [one for one in operations if isinstance(one, Write) and _is_log_header(one)]
    assert len(headers) > 5
    assert kinds[Mark] == images.ROUNDS * 4


async def test_a_record_is_what_the_files_hold(tmp_path: Path) -> None:
    operations = await images.record(tmp_path)
    files = disk_image.after_power_loss([*operations, Sync("p.db")], Random(0))
    assert files["p.db"] == (tmp_path / "p.db").read_bytes()
    assert not (tmp_path / "p.db-wal").exists()


@pytest.mark.parametrize("number", [0, 700, 1_050, 1_119])
def test_an_image_is_the_same_however_it_is_drawn(number: int) -> None:
    operations = images.recorded().operations
    files, _ = images.recorded().draw(number)
    assert images.Recording(operations).draw(number)[0] == files
    cut = operations[: number % len(operations) + 1]
    assert disk_image.after_power_loss(cut, Random(f"image {number}")) == files


def test_an_image_that_was_seen_before_is_held_to_what_was_said_since() -> None:
    recording = images.Recording([Create("p.db"), Mark("msg_never_admitted")])
    files, _ = recording.draw(0)
    recording.look(0)
    assert recording.draw(1)[0] == files
    with pytest.raises(BrokenImageError, match=r"lost: .*msg_never_admitted"):
        recording.look(1)


def test_what_was_synced_stays_and_what_was_not_may_be_torn_at_sectors() -> None:
    old, new = b"o" * 8_192, b"n" * 8_192
    written = [Create("f"), Write("f", 0, old), Sync("f"), Write("f", 0, new)]
    found = {disk_image.after_power_loss(written, Random(seed))["f"] for seed in range(300)}
    assert {old, new} < found
    for content in found:
        sectors = {content[at : at + 512] for at in range(0, 8_192, 512)}
        assert sectors <= {b"o" * 512, b"n" * 512}
    kept = [*written, Sync("f")]
    assert {disk_image.after_power_loss(kept, Random(n))["f"] for n in range(50)} == {new}


def test_what_a_failed_sync_did_not_write_is_not_written_by_the_next_one() -> None:
    written = [Create("f"), Write("f", 0, b"a"), FailedSync("f"), Write("f", 1, b"b"), Sync("f")]
    found = {disk_image.after_power_loss(written, Random(seed))["f"] for seed in range(50)}
    assert found == {b"ab", b"\0b"}


def test_unsynced_writes_may_arrive_in_another_order() -> None:
    written = [Create("f"), Write("f", 0, b"first"), Write("f", 0, b"later")]
    found = {disk_image.after_power_loss(written, Random(seed))["f"] for seed in range(50)}
    assert found >= {b"first", b"later", b""}


def test_a_removal_may_be_undone_until_the_directory_is_synced() -> None:
    removed = [Create("f-wal"), Write("f-wal", 0, b"x"), Sync("f-wal"), Delete("f-wal")]
    found = [disk_image.after_power_loss(removed, Random(seed)) for seed in range(30)]
    assert {} in found
    assert {"f-wal": b"x"} in found
    again = [*removed, Create("g-wal"), Write("g-wal", 0, b"y"), Sync("g-wal")]
    for seed in range(30):
        assert disk_image.after_power_loss(again, Random(seed)) == {"g-wal": b"y"}


def test_an_image_can_be_repeated_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert images.main(["--image", "1500", "--keep", str(tmp_path / "kept")]) == 0
    assert capsys.readouterr().out == "images 1500 to 1500: every promise was kept\n"
    assert (tmp_path / "kept" / "p.db").exists()
    assert images.main(["--image", "1500", "--count", "40", "--unsynced"]) == 1
    assert "image 15" in capsys.readouterr().out


def _is_log_header(write: Write) -> bool:
    return write.file == "p.db-wal" and write.offset == 0
