"""The simulated disk: syncs that fail, room that ends, power that goes, bits that rot."""

import errno
import random

import pytest

from simulation.disks.disk import SimulatedDisk, Trouble
from simulation.disks.inode import SIGNS, Inode, bit_that_rots
from simulation.schedule import Process, Schedule
from simulation.truth import entry_of
from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import build_envelope, crc_matches, parse_header
from sparklog.storage.disk import SyncFailed, WriteFailed
from sparklog.storage.segments.scan import check

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


def test_data_of_a_failed_fsync_is_readable_until_the_next_process_opens_the_file(disk, mounted) -> None:
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


def test_where_the_device_fails_a_write_all_that_waits_in_that_log_directory_may_be_lost(disk) -> None:
    mounted = disk.mount(Process(Schedule(), "broker-1"))
    files = {}
    for home in ("/one", "/two"):
        mounted.make_directory(f"{home}/t-0")
        mounted.write_atomically(f"{home}/meta.properties", b"whose it is")
        files[home] = mounted.open(f"{home}/t-0/0.log", create=True)
        files[home].append(b"waits")
    disk.trouble = Trouble(1, fail)
    with pytest.raises(WriteFailed):
        mounted.write_atomically("/one/checkpoint", b"1")
    assert disk.failed == {"/one"}
    with pytest.raises(SyncFailed):
        files["/one"].fsync()
    files["/one"].fsync()  # Linux tells it once
    files["/two"].fsync()
    disk.let_doomed_fade()
    disk.lose_fading(random.Random(1))
    assert mounted.read("/one/t-0/0.log") in (b"", bytes(5))
    assert mounted.read("/two/t-0/0.log") == b"waits"


def test_only_the_unreported_failure_of_a_directory_is_excused(disk) -> None:
    mounted = disk.mount(Process(Schedule(), "broker-1"))
    for home in ("/one", "/two"):
        mounted.make_directory(f"{home}/t-0")
        mounted.write_atomically(f"{home}/meta.properties", b"whose it is")
        mounted.open(f"{home}/t-0/0.log", create=True).append(b"waits")
        disk.trouble = Trouble(1, fail)
        with pytest.raises(WriteFailed):
            mounted.write_atomically(f"{home}/checkpoint", b"1")
    disk.forgive(but_for={"/two"})
    assert disk.failed == {"/two"}
    disk.let_doomed_fade()
    disk.lose_fading(random.Random(1))
    assert mounted.read("/one/t-0/0.log") == b"waits"
    assert mounted.read("/two/t-0/0.log") in (b"", bytes(5))


def test_trouble_that_is_meant_for_one_process_leaves_another_one_alone(disk, mounted) -> None:
    second = Process(Schedule(), "broker-1, launched twice")
    disk.trouble = Trouble(1, fail, counts=lambda process: process is not second)
    disk.mount(second).make_directory("/data/t-1")
    with pytest.raises(OSError, match="input/output error"):
        mounted.make_directory("/data/t-2")


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


def test_nothing_appended_to_a_file_that_another_descriptor_cut_leaves_it_cut(mounted) -> None:
    file = mounted.open(LOG, create=True)
    file.append(b"old")
    mounted.open(LOG).truncate(1)
    file.append(b"")
    assert mounted.read(LOG) == b"o"


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


def outcomes_of_power_cuts(prepare, look, cuts: int = 80) -> set:
    """What there may be after a power cut of a disk that was prepared so."""
    found = set()
    for seed in range(cuts):
        disk = SimulatedDisk()
        mounted = disk.mount(Process(Schedule(), "broker-1"))
        mounted.make_directory("/data/t-0")
        mounted.sync_directory("/data")
        prepare(mounted)
        disk.cut_power(random.Random(seed))
        found.add(look(mounted))
    return found


def test_a_power_cut_may_keep_a_later_page_and_lose_an_earlier_one() -> None:
    def write(mounted) -> None:
        file = mounted.open(LOG, create=True)
        file.append(b"s" * 512)
        file.fsync()
        mounted.sync_directory("/data/t-0")
        file.append(b"a" * 512 + b"b" * 100)

    found = outcomes_of_power_cuts(write, lambda mounted: mounted.read(LOG)[512:])
    assert {b"", bytes(512) + b"b" * 100, b"a" * 512, b"a" * 512 + b"b" * 100} <= found
    assert all(len(one) <= 612 for one in found)


def test_a_power_cut_never_takes_what_was_synced() -> None:
    def write(mounted) -> None:
        file = mounted.open(LOG, create=True)
        file.append(b"s" * 700)
        file.fsync()
        mounted.sync_directory("/data/t-0")
        file.append(b"x" * 3_000)

    assert outcomes_of_power_cuts(write, lambda mounted: mounted.read(LOG)[:700]) == {b"s" * 700}


def test_a_power_cut_may_undo_the_rename_of_a_directory_and_its_removal() -> None:
    def rename(mounted) -> None:
        mounted.rename("/data/t-0", "/data/t-0-delete")

    def remove(mounted) -> None:
        rename(mounted)
        mounted.sync_directory("/data")
        mounted.remove_directory("/data/t-0-delete")

    assert outcomes_of_power_cuts(rename, lambda one: tuple(one.list("/data"))) == {
        ("t-0",),
        ("t-0-delete",),
    }
    assert outcomes_of_power_cuts(remove, lambda one: tuple(one.list("/data"))) == {(), ("t-0-delete",)}


def test_changes_of_a_directory_survive_in_their_order() -> None:
    def create(mounted) -> None:
        for name in ("a", "b", "c"):
            mounted.open(f"/data/t-0/{name}", create=True)

    found = outcomes_of_power_cuts(create, lambda one: "".join(one.list("/data/t-0")))
    assert found == {"", "a", "ab", "abc"}


def test_a_log_rots_only_where_its_checksums_can_tell(disk, mounted) -> None:
    for seed in range(50):
        file = mounted.open(LOG, create=True)
        file.truncate(0)
        file.append(batch())
        assert disk.rot(random.Random(seed), logs=True) == LOG
        assert check(mounted.open(LOG), 0, lambda *_: None) is not None


@pytest.mark.parametrize("sign", SIGNS)
def test_no_batch_rots_into_what_is_none(sign) -> None:
    """The witness reads what no start does, and could not; seeds 506647, 507425."""
    draw = random.Random(1)
    assert {bit_that_rots(draw, sign) for _ in range(200)} == {1 << bit for bit in range(7)}
    assert {bit_that_rots(draw, sign + 1) for _ in range(200)} == {1 << bit for bit in range(8)}
    damaged = bytearray(batch())
    damaged[sign] ^= 0x40
    assert parse_header(damaged)
    damaged[sign] ^= 0x80
    with pytest.raises(CorruptBatch):
        parse_header(damaged)


def test_a_batch_rots_where_its_crc_can_tell_and_a_scrubber_mends_what_nobody_found(disk, mounted) -> None:
    file = mounted.open(LOG, create=True)
    file.append(batch())
    for seed in range(20):
        rot = disk.rot_batch(random.Random(seed), {"t-0"}, is_last=False)
        assert rot is not None
        assert mounted.read(LOG) != batch()
        rotten = parse_header(mounted.read(LOG))
        assert not crc_matches(mounted.read(LOG), 0, rotten)
        assert entry_of(rotten) == entry_of(parse_header(batch()))
        assert not disk.scrub()
        assert mounted.read(LOG) == batch()


def test_a_batch_that_was_found_and_fetched_again_is_left_alone(disk, mounted) -> None:
    file = mounted.open(LOG, create=True)
    file.append(batch())
    disk.rot_batch(random.Random(1), {"t-0"}, is_last=True)
    file.truncate(0)
    file.append(batch())
    assert disk.scrub()
    assert mounted.read(LOG) == batch()


@pytest.mark.parametrize(
    "end_it",
    [
        lambda disk, mounted: disk.scrub(),
        lambda disk, mounted: disk.wipe(),
        lambda disk, mounted: mounted.remove(LOG),
        lambda disk, mounted: mounted.open(LOG).truncate(0),
    ],
    ids=["scrubbed", "wiped", "removed", "cut"],
)
def test_a_log_rots_until_the_batch_is_gone(disk, mounted, end_it) -> None:
    mounted.open(LOG, create=True).append(batch())
    assert not disk.rots("t-0")
    disk.rot_batch(random.Random(1), {"t-0"}, is_last=True)
    assert disk.rots("t-0")
    assert not disk.rots("t-1")
    end_it(disk, mounted)
    assert not disk.rots("t-0")


def test_what_rots_while_no_broker_runs_is_there_until_it_is_cut_and_no_scrubber_mends_it(
    disk, mounted
) -> None:
    log = mounted.open(LOG, create=True)
    log.append(batch())
    disk.rot(random.Random(1), logs=True)
    assert disk.rots("t-0")
    assert not disk.scrub()
    assert disk.rots("t-0")
    log.truncate(0)
    assert not disk.rots("t-0")


def test_an_empty_disk_knows_nothing_of_the_one_before(disk, mounted) -> None:
    mounted.lock("/data/.lock")
    disk.wipe()
    assert not mounted.exists("/data")
    disk.mount(Process(Schedule(), "another")).lock("/data/.lock")


def test_after_an_orderly_shutdown_a_power_cut_changes_nothing(disk, mounted) -> None:
    for seed in range(20):
        mounted.open(f"/data/t-0/{seed}", create=True).append(b"x" * 2_000)
        disk.sync_all()
        disk.cut_power(random.Random(seed))
        assert mounted.read(f"/data/t-0/{seed}") == b"x" * 2_000


def test_a_slow_disk_holds_up_its_process_and_nobody_else() -> None:
    schedule = Schedule()
    slow, other = Process(schedule, "slow"), Process(schedule, "other")
    disk = SimulatedDisk(slow_ms=100.0)
    told = []

    def write() -> None:
        disk.mount(slow).make_directory("/data")
        told.append((slow, schedule.now_us))

    slow.soon(write)
    schedule.at(1_000, other, lambda: told.append((other, schedule.now_us)))
    schedule.run_until(200_000)
    assert [who for who, _ in told] == [other, slow]
    assert told[1][1] > 1_000


def test_nothing_rots_where_nothing_is(disk, mounted) -> None:
    assert disk.rot(random.Random(1), logs=True) is None
    assert disk.rot(random.Random(1), logs=False) is None


# ---- what else a power cut may leave, as ext4 does -----------------------------------------------------


def test_a_power_cut_may_keep_a_truncation_and_lose_what_was_appended_behind_it() -> None:
    def write(mounted) -> None:
        file = mounted.open(LOG, create=True)
        file.append(b"abcdefgh")
        file.fsync()
        mounted.sync_directory("/data/t-0")
        file.truncate(3)
        file.append(b"xyz")

    found = outcomes_of_power_cuts(write, lambda mounted: mounted.read(LOG), cuts=1_000)
    assert {b"abc", b"abcdefgh", b"abcxyz", b"abcxyz\0\0", b"abc\0\0\0"} <= found
    assert all(one.startswith(b"abc") for one in found)


def test_a_power_cut_may_keep_a_files_size_and_lose_its_last_bytes() -> None:
    def write(mounted) -> None:
        file = mounted.open(LOG, create=True)
        file.append(b"s" * 100)
        file.fsync()
        mounted.sync_directory("/data/t-0")
        file.append(b"a" * 3)

    found = outcomes_of_power_cuts(write, lambda mounted: mounted.read(LOG)[100:], cuts=1_000)
    assert {b"", b"aaa", b"\0\0\0", b"a\0\0"} <= found


def test_a_power_cut_may_bring_back_what_was_cut_before_it_was_ever_synced() -> None:
    def write(mounted) -> None:
        file = mounted.open(LOG, create=True)
        mounted.sync_directory("/data/t-0")
        file.append(b"first")
        file.truncate(0)
        file.append(b"next")

    found = outcomes_of_power_cuts(write, lambda mounted: mounted.read(LOG), cuts=1_000)
    assert {b"", b"first", b"next"} <= found


def test_a_power_cut_in_a_replacement_may_leave_the_temporary_file_beside_the_old_one() -> None:
    def write(mounted) -> None:
        mounted.write_atomically("/data/t-0/a", b"old")
        mounted.write_atomically("/data/t-0/a", b"new", sync=False)

    found = outcomes_of_power_cuts(write, lambda one: (tuple(one.list("/data/t-0")), one.read("/data/t-0/a")))
    assert {(("a", "a.tmp"), b"old"), (("a",), b"old"), (("a",), b"new")} <= found


def test_a_removed_directory_that_comes_back_may_be_as_it_was_before_its_last_changes() -> None:
    def remove(mounted) -> None:
        mounted.make_directory("/data/t-0/deep")
        mounted.write_atomically("/data/t-0/a", b"x")
        mounted.sync_directory("/data/t-0")
        mounted.rename("/data/t-0/a", "/data/t-0/b")
        mounted.remove_directory("/data/t-0")

    def look(mounted):
        return tuple(mounted.list("/data/t-0")) if mounted.exists("/data/t-0") else None

    found = outcomes_of_power_cuts(remove, look, cuts=400)
    assert found == {None, (), ("deep",), ("a", "deep"), ("b", "deep"), ("b",)}


def test_a_power_cut_that_undoes_a_move_restores_the_empty_directory_that_was_replaced() -> None:
    def move(mounted) -> None:
        mounted.make_directory("/data/t-1")
        mounted.sync_directory("/data")
        mounted.rename("/data/t-0", "/data/t-1")

    found = outcomes_of_power_cuts(move, lambda one: tuple(one.list("/data")))
    assert found == {("t-1",), ("t-0", "t-1")}


def test_a_file_that_moved_between_directories_is_in_exactly_one_of_them() -> None:
    def move(mounted) -> None:
        mounted.make_directory("/data/t-1")
        mounted.write_atomically("/data/t-1/a", b"moved")
        mounted.sync_directory("/data")
        mounted.rename("/data/t-1/a", "/data/t-0/a")
        mounted.write_atomically("/data/t-1/a", b"", sync=False)

    def look(mounted):
        places = [one for one in ("/data/t-0/a", "/data/t-1/a") if mounted.exists(one)]
        return sum(mounted.read(one) == b"moved" for one in places)

    assert outcomes_of_power_cuts(move, look) == {1}


# ---- whether a power cut could leave what was found ----------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_what_dice_leave_of_a_file_could_be_left(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        inode, twin = Inode(), Inode()
        for _ in range(draw.randint(1, 8)):
            way, size, data = draw.random(), draw.randrange(3_000), draw.randbytes(draw.randrange(3_000))
            for one in (inode, twin):
                if way < 0.2:
                    one.truncate(min(size, len(one.data)))
                elif way < 0.3:
                    one.sync()
                else:
                    one.write(len(one.data), data)
        inode.lose(inode.draw_left(draw))
        assert twin.could_be_left(bytes(inode.data))


def after(disk: SimulatedDisk, **changes: bytes | None) -> dict[str, bytes | None]:
    """What is on the disk, but for these files: other bytes, or None for gone."""
    tree = disk.tree()
    for name, data in changes.items():
        del tree[f"/data/t-0/{name}"]
        tree |= {} if data is None else {f"/data/t-0/{name}": data}
    return tree


def test_what_was_synced_could_not_be_lost_and_what_was_not_could(disk, mounted) -> None:
    for name in ("a", "b"):
        file = mounted.open(f"/data/t-0/{name}", create=True)
        file.append(b"synced")
        file.fsync()
        file.append(b"more")
    disk.journal.clear()
    for name in ("a", "b"):
        assert disk.could_be_left(after(disk, **{name: b"synced"}))
        assert disk.could_be_left(after(disk, **{name: b"syncedmo"}))
        assert not disk.could_be_left(after(disk, **{name: b"sync"}))
        assert not disk.could_be_left(after(disk, **{name: b"syncedMORE"}))
        assert not disk.could_be_left(after(disk, **{name: None}))
    assert disk.could_be_left(disk.tree()), "asking has changed nothing"


def test_names_could_be_lost_from_the_last_change_backwards_only(disk, mounted) -> None:
    disk.journal.clear()
    for name in ("a", "b", "c"):
        mounted.open(f"/data/t-0/{name}", create=True)
    assert disk.could_be_left(after(disk, c=None))
    assert disk.could_be_left(after(disk, a=None, b=None, c=None))
    assert not disk.could_be_left(after(disk, a=None))
    mounted.sync_directory("/data/t-0")
    assert not disk.could_be_left(after(disk, c=None))
