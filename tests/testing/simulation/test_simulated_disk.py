"""The simulated disk: syncs that fail, room that ends, power that goes, bits that rot."""

import errno
import random

import pytest

from sparklog.records.envelope import build_envelope
from sparklog.storage.disk import SyncFailed
from sparklog.storage.scan import check
from sparklog.testing.simulation.disk import SimulatedDisk, Trouble
from sparklog.testing.simulation.schedule import Process, Schedule

LOG = "/data/t-0/00000000000000000000.log"


@pytest.fixture
def disk():
    return SimulatedDisk()


@pytest.fixture
def mounted(disk):
    mounted = disk.mount(Process(Schedule(), "broker-1"))
    mounted.make_directory("/data/t-0")
    return mounted


def fail() -> None:
    raise OSError(errno.EIO, "input/output error")


def batch() -> bytes:
    return build_envelope(
        b"x" * 40, attributes=0, record_count=1, last_offset_delta=0, base_timestamp_ms=1, max_timestamp_ms=1
    )


def test_what_a_failed_fsync_should_have_saved_is_there_until_the_next_process_opens_the_file(
    disk, mounted
) -> None:
    file = mounted.open(LOG, create=True)
    file.append(b"saved")
    file.fsync()
    file.append(b"doomed")
    disk.trouble = Trouble(1, fail, at="fsync")
    with pytest.raises(SyncFailed):
        file.fsync()
    file.fsync()  # Linux tells it once
    assert mounted.read(LOG) == b"saveddoomed"
    disk.let_doomed_fade()
    disk.lose_fading(random.Random(1))
    assert mounted.read(LOG) in (b"saved", b"saved" + bytes(6))


def test_trouble_at_an_fsync_leaves_writes_alone(disk, mounted) -> None:
    disk.trouble = Trouble(1, fail, at="fsync")
    file = mounted.open(LOG, create=True)
    file.append(b"a")
    mounted.write_atomically("/data/checkpoint", b"1")
    with pytest.raises(SyncFailed):
        file.fsync()


def test_a_full_disk_takes_a_part_and_the_file_ends_where_it_ended(disk, mounted) -> None:
    file = mounted.open(LOG, create=True)
    file.append(b"old")
    disk.is_full = 1
    with pytest.raises(OSError, match="no space") as caught:
        file.append(b"new!")
    assert (caught.value.errno, file.size(), mounted.size(LOG)) == (errno.ENOSPC, 3, 5)
    disk.is_full = 0
    file.append(b"next")
    assert mounted.read(LOG) == b"oldnext"


def test_a_power_cut_may_undo_a_rename_whose_directory_was_not_synced(mounted, disk) -> None:
    mounted.write_atomically("/data/name", b"old")
    outcomes = set()
    for seed in range(40):
        mounted.write_atomically("/data/name", b"old")
        mounted.write_atomically("/data/name", b"new", sync=False)
        mounted.sync_file("/data/name")
        disk.cut_power(random.Random(seed))
        outcomes.add(mounted.read("/data/name"))
    assert outcomes == {b"old", b"new"}


def test_a_log_rots_only_where_its_checksums_can_tell(disk, mounted) -> None:
    for seed in range(50):
        file = mounted.open(LOG, create=True)
        file.truncate(0)
        file.append(batch())
        assert disk.rot(random.Random(seed), logs=True) == LOG
        assert check(mounted.open(LOG), 0, lambda *_: None) is not None


def test_nothing_rots_where_nothing_is(disk, mounted) -> None:
    assert disk.rot(random.Random(1), logs=True) is None
    assert disk.rot(random.Random(1), logs=False) is None
