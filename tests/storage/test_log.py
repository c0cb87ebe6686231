"""A log in one process's life: appending, reading, rolling, cutting, flushing."""

import errno
import logging
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from sparklog.model.errors import LogDirectoryError
from sparklog.model.parts import FileSlice, read_parts
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.late_removals import remove_files
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from tests.of_this_thread import of_this_thread

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


def filled(bench: Bench, batches: int, config: LogConfig = SMALL, **kwargs: Any) -> Log:
    log: Log = bench.open(config)
    for _ in range(batches):
        bench.append(log, **kwargs)
    return log


# ---- appending and reading ---------------------------------------------------------------------------------


def test_a_new_log_is_empty(bench: Bench) -> None:
    log = bench.open()
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
    assert log.epochs.latest_epoch == -1
    assert log.corruption is None
    found = log.read(0, 1_000, 1_000, at_least_one_batch=True)
    assert (found.parts, found.size_bytes, found.next_offset) == ([], 0, 0)


def test_what_was_appended_is_in_the_file_when_append_returns(bench: Bench) -> None:
    log = bench.open()
    data = bench.batch(0, 3) + bench.batch(3, 2)
    info = log.append(memoryview(data), split(data))
    assert (info.first_offset, info.last_offset, info.size_bytes, info.rolled) == (0, 4, 200, False)
    assert bench.segment_file(0).read_bytes() == data
    assert log.log_end_offset == 5


def test_a_read_returns_slices_of_the_file(bench: Bench) -> None:
    log = bench.open()
    data = bench.append(log, 5)
    found = log.read(0, 1_000, 5, at_least_one_batch=True)
    (part,) = found.parts
    assert isinstance(part, FileSlice)
    assert part.read() == data
    assert (found.next_offset, found.segment_base, found.position) == (5, 0, 0)


def test_a_read_begins_with_the_batch_that_holds_the_offset(bench: Bench) -> None:
    log = bench.open()
    bench.append(log, 5)
    second = bench.append(log, 5)
    assert bench.read(log, 7) == second


@pytest.mark.parametrize("offset", [-1, 6])
def test_a_read_outside_the_log_is_none(bench: Bench, offset: int) -> None:
    log = bench.open()
    bench.append(log, 5)
    assert log.read(offset, 1_000, 1_000, at_least_one_batch=True) is None
    assert log.read(5, 1_000, 1_000, at_least_one_batch=True).parts == []


def test_a_read_takes_whole_batches_only(bench: Bench) -> None:
    log = filled(bench, 9)
    for limit, expected in ((99, 0), (100, 1), (299, 2), (300, 3)):
        assert log.read(0, limit, 99, at_least_one_batch=False).size_bytes == expected * 100
    assert log.read(0, 0, 99, at_least_one_batch=True).size_bytes == 100


def test_no_batch_that_reaches_the_maximal_offset_is_read(bench: Bench) -> None:
    log = bench.open()
    first = bench.append(log, 5)
    bench.append(log, 5)
    for max_offset in (5, 6, 9):
        assert bench.read(log, 0, max_offset=max_offset) == first
    assert bench.read(log, 0, max_offset=4) == b""
    assert len(bench.read(log, 0, max_offset=10)) == 200


def test_a_read_goes_on_into_the_next_segment(bench: Bench) -> None:
    log = filled(bench, 25)
    assert log.segment_bases == [0, 10, 20]
    found = log.read(8, 400, 99, at_least_one_batch=True)
    assert [part.length for part in found.parts] == [200, 200]
    assert (found.next_offset, found.segment_base, found.position) == (12, 0, 800)
    assert len(bench.read(log, 0)) == 2_500


def test_slices_outlive_retention_and_deletion(bench: Bench) -> None:
    log = filled(bench, 25)
    found = log.read(0, 2_500, 99, at_least_one_batch=True)
    log.raise_log_start(20)
    assert log.delete_old_segments(high_watermark=25) == 2
    log.delete()
    assert len(read_parts(found.parts)) == 2_500


def test_an_append_that_is_not_at_the_end_is_a_bug(bench: Bench) -> None:
    log = filled(bench, 3)
    data = bench.batch(1)
    with pytest.raises(ValueError, match="not the end"):
        log.append(data, split(data))


def test_a_follower_may_append_past_a_hole(bench: Bench) -> None:
    """Compaction leaves holes; the copy of a compacted log has them too."""
    log = bench.open()
    bench.append(log, 2)
    bench.append_all(log, bench.batch(10, 2), bench.batch(20, 2))
    assert log.log_end_offset == 22
    assert [header.base_offset for header in bench.headers(log)] == [0, 10, 20]
    assert [header.base_offset for _, header in split(bench.read(log, 5))] == [10, 20]


def test_a_full_disk_leaves_the_log_as_it_was(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(bench, 2)
    real = os.pwrite
    calls: list[int] = []

    def full(descriptor: int, data: bytes, position: int) -> int:
        calls.append(position)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:30], position)

    monkeypatch.setattr(os, "pwrite", of_this_thread(real, full))
    with pytest.raises(OSError, match="No space"):
        bench.append(log)
    monkeypatch.undo()
    assert (log.log_end_offset, log.size_bytes) == (2, 200)
    bench.append(log)
    assert [header.base_offset for header in bench.headers(log)] == [0, 1, 2]


# ---- rolling -----------------------------------------------------------------------------------------------


def test_a_segment_is_rolled_before_it_would_be_too_large(bench: Bench) -> None:
    log = filled(bench, 10)
    assert log.segment_bases == [0]
    assert log.append(bench.batch(10), split(bench.batch(10))).rolled
    assert log.segment_bases == [0, 10]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(bench: Bench) -> None:
    log = filled(bench, 1)
    bench.append(log, size=5_000)
    bench.append(log)
    assert log.segment_bases == [0, 1, 2]


def test_a_segment_is_rolled_when_its_records_span_too_long(bench: Bench) -> None:
    log = bench.open(LogConfig(segment_ms=1_000))
    bench.append(log, timestamp=5_000)
    bench.clock.now_ms += 10**9
    bench.append(log, timestamp=6_000)
    assert log.segment_bases == [0]
    bench.append(log, timestamp=6_001)
    assert log.segment_bases == [0, 2]


def test_records_without_time_are_rolled_by_the_clock(bench: Bench) -> None:
    log = bench.open(LogConfig(segment_ms=1_000))
    bench.append(log, timestamp=-1)
    bench.clock.now_ms += 1_001
    bench.append(log, timestamp=-1)
    assert log.segment_bases == [0, 1]


def test_a_segment_is_rolled_when_its_index_is_full(bench: Bench) -> None:
    log = filled(bench, 30, LogConfig(index_interval_bytes=0, index_max_bytes=80))
    assert [
        after - before for before, after in zip(log.segment_bases, log.segment_bases[1:], strict=False)
    ] == [11, 11]


@pytest.mark.scenario("S57")
def test_offsets_too_far_apart_for_an_index_are_rolled(bench: Bench) -> None:
    log = bench.open()
    bench.append(log)
    bench.append_all(log, bench.batch(2**31 + 5))
    bench.append_all(log, bench.batch(2**33))
    assert log.segment_bases == [0, 1, 2**33] or log.segment_bases[-1] == 2**33
    assert [header.base_offset for header in bench.headers(log)] == [0, 2**31 + 5, 2**33]
    log.close()
    assert len(bench.headers(bench.open(recovery_point=2**33 + 1, clean=True))) == 3


def test_rolling_an_empty_segment_does_nothing(bench: Bench) -> None:
    log = bench.open()
    log.roll()
    assert log.segment_bases == [0]
    bench.append(log)
    log.roll()
    log.roll()
    assert log.segment_bases == [0, 1]


# ---- epochs and producers ----------------------------------------------------------------------------------


def test_batches_bring_their_epochs_along(bench: Bench) -> None:
    log = bench.open()
    bench.append_all(log, bench.batch(0, 2, epoch=1), bench.batch(2, 2, epoch=1), bench.batch(4, epoch=4))
    assert log.epochs.entries == [(1, 0), (4, 4)]
    log.assign_epoch(6, 5)
    assert log.epochs.end_offset_for(4, log.log_end_offset) == (4, 5)


def test_producers_follow_appends_and_truncations(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(25):
        bench.append(log, producer=(7, 0, number))
    assert log.producers.producers[7].last_sequence == 24
    log.truncate_to(13)
    assert [known.last_sequence for known in log.producers.producers[7].batches] == [8, 9, 10, 11, 12]
    log.truncate_to(3)
    assert [known.last_sequence for known in log.producers.producers[7].batches] == [0, 1, 2]
    log.truncate_to(0)
    assert not log.producers.producers


def test_a_truncation_replays_few_batches_of_a_long_segment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparklog.storage.log.SNAPSHOT_BATCHES", 50)
    log = bench.open()
    for number in range(240):
        bench.append(log, producer=(7, 0, number))
    snapshots = [name for name in sorted(os.listdir(log.directory)) if name.endswith(".snapshot")]
    assert snapshots == ["00000000000000000150.snapshot", "00000000000000000200.snapshot"]
    for end in (230, 180, 20):
        log.truncate_to(end)
        assert [known.last_sequence for known in log.producers.producers[7].batches] == [*range(end - 5, end)]


# ---- truncation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [0, 1, 9, 10, 11, 20, 24])
def test_truncation_leaves_the_log_as_if_it_had_never_been_longer(bench: Bench, end: int) -> None:
    log = filled(bench, 25)
    assert log.truncate_to(end) == end
    log.check_invariants()
    assert [header.base_offset for header in bench.headers(log)] == list(range(end))
    bench.append(log, epoch=1)
    assert bench.headers(log)[-1].base_offset == end
    assert log.epochs.latest_epoch == 1


@pytest.mark.scenario("S22")
def test_truncation_in_the_middle_of_a_batch_takes_the_batch(bench: Bench) -> None:
    log = bench.open()
    bench.append(log, 5)
    bench.append(log, 5)
    assert log.truncate_to(7) == 5
    assert log.log_end_offset == 5


@pytest.mark.scenario(
    "S50", "Truncating at the log's end cuts no record but forgets an epoch that begins there (KAFKA-10706)."
)
def test_truncation_beyond_the_end_prunes_epochs_only(bench: Bench) -> None:
    log = filled(bench, 3)
    log.assign_epoch(4, 3)
    assert log.truncate_to(3) == 3
    assert log.epochs.entries == [(0, 0)]


def test_truncation_removes_files_and_lowers_what_vouches(bench: Bench) -> None:
    log = filled(bench, 25)
    log.flush()
    told: list[tuple[int, int]] = []
    log.before_cut = lambda end: told.append((end, len(log.segment_bases)))
    generation = log.generation
    log.truncate_to(5)
    assert told == [(5, 3)]
    assert (log.recovery_point, log.generation) == (5, generation + 1)
    assert sorted(name for name in os.listdir(log.directory) if name.endswith((".log", ".snapshot"))) == [
        "00000000000000000000.log"
    ]


def test_a_log_can_start_anew_at_its_leader_s_start(bench: Bench) -> None:
    log = filled(bench, 25)
    log.truncate_fully_and_start_at(500)
    log.check_invariants()
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (500, 500, 0)
    assert log.epochs.entries == []
    bench.append(log)
    assert [header.base_offset for header in bench.headers(log)] == [500]


def test_truncation_before_the_first_segment_starts_anew_there(bench: Bench) -> None:
    log = filled(bench, 25)
    log.raise_log_start(20)
    log.delete_old_segments(25)
    assert log.truncate_to(7) == 7
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


# ---- log start and retention -------------------------------------------------------------------------------


def test_raising_the_log_start_hides_records_and_trims_epochs(bench: Bench) -> None:
    log = filled(bench, 25, epoch=2)
    assert log.raise_log_start(12)
    assert not log.raise_log_start(12)
    assert log.read(11, 100, 99, at_least_one_batch=True) is None
    assert log.epochs.entries == [(2, 12)]
    with pytest.raises(ValueError, match="beyond the end"):
        log.raise_log_start(26)
    assert log.delete_old_segments(25) == 1
    assert log.segment_bases == [10, 20]


def test_retention_by_size_removes_whole_segments_only_while_enough_is_left(bench: Bench) -> None:
    log = filled(bench, 25, LogConfig(segment_bytes=1_000, retention_bytes=1_400, retention_ms=-1))
    assert log.delete_old_segments(25) == 1
    assert (log.log_start_offset, log.size_bytes) == (10, 1_500)


@pytest.mark.scenario("S48", "Retention removes no segment at or above the high watermark.")
def test_retention_by_time_spares_all_above_the_high_watermark(bench: Bench) -> None:
    log = filled(bench, 25, LogConfig(segment_bytes=1_000, retention_ms=100))
    assert log.delete_old_segments(high_watermark=15) == 1
    assert log.delete_old_segments(high_watermark=24) == 1
    assert log.delete_old_segments(high_watermark=24) == 0
    assert log.segment_bases == [20]


def test_an_active_segment_that_is_too_old_as_a_whole_is_rolled_and_goes_too(bench: Bench) -> None:
    log = filled(bench, 25, LogConfig(segment_bytes=1_000, retention_ms=100))
    assert log.delete_old_segments(high_watermark=25) == 3
    assert (log.segment_bases, log.log_start_offset, log.size_bytes) == ([25], 25, 0)
    log.check_invariants()
    assert log.delete_old_segments(high_watermark=25) == 0
    bench.append(log, timestamp=bench.clock.now_ms)
    assert log.delete_old_segments(high_watermark=26) == 0
    log.close()
    again = bench.open(recovery_point=26, clean=True)
    assert (again.log_start_offset, again.log_end_offset) == (25, 26)


@pytest.mark.bug(
    "B13",
    "records",
    "A replica that retention emptied forgets its last epoch, and truncates committed records.",
)
def test_after_a_crash_a_log_that_retention_emptied_still_knows_its_last_epoch(bench: Bench) -> None:
    config = LogConfig(segment_bytes=1_000, retention_ms=100)
    log = filled(bench, 25, config, epoch=4)
    log.flush()
    for _ in range(5):
        bench.append(log, epoch=5)
    assert log.delete_old_segments(30) == 3
    again = bench.open(config, recovery_point=25, high_watermark=30)
    assert again.epochs.entries == log.epochs.entries == [(5, 30)]


@pytest.mark.bug("B13")
def test_a_log_that_began_anew_and_crashed_claims_no_epoch_that_it_gave_up(bench: Bench) -> None:
    log = filled(bench, 25, epoch=9)
    log.flush()
    log.truncate_fully_and_start_at(60)
    again = bench.open(recovery_point=0)
    assert (again.log_start_offset, again.epochs.entries) == (60, [])


def closed_log(bench: Bench, timestamp: int) -> Path:
    """A log of two full segments and a part, closed; the time index of the first."""
    log = filled(bench, 25, LogConfig(segment_bytes=1_000, index_interval_bytes=300), timestamp=timestamp)
    log.close()
    path: Path = bench.segment_file(0, ".timeindex")
    return path


@pytest.mark.bug("B15", "records", "A rotten time index makes retention remove young, committed records.")
@pytest.mark.parametrize("bit", range(96))
def test_no_rotten_bit_of_a_time_index_makes_retention_take_what_is_young(bench: Bench, bit: int) -> None:
    index = closed_log(bench, timestamp=bench.clock.now_ms)
    data = bytearray(index.read_bytes())
    data[bit // 8 - 12] ^= 0x80 >> bit % 8
    index.write_bytes(data)
    log = bench.open(LogConfig(retention_ms=1_000), recovery_point=25, clean=True)
    bench.clock.now_ms += 900
    for _ in range(3):
        assert log.delete_old_segments(25) == 0


@pytest.mark.bug("B15")
def test_an_index_that_made_a_segment_look_too_old_is_made_anew_on_disk(bench: Bench) -> None:
    index = closed_log(bench, timestamp=bench.clock.now_ms)
    sound = index.read_bytes()
    index.write_bytes(bytes(8) + sound[8:])
    log = bench.open(LogConfig(retention_ms=1_000, index_interval_bytes=300), recovery_point=25, clean=True)
    assert log.delete_old_segments(25) == 0
    assert index.read_bytes() == sound
    bench.clock.now_ms += 1_001
    assert log.delete_old_segments(25) == 3


@pytest.mark.bug("B15")
def test_a_rotten_index_of_the_active_segment_does_not_make_it_too_old(bench: Bench) -> None:
    closed_log(bench, timestamp=bench.clock.now_ms)
    index = bench.segment_file(20, ".timeindex")
    index.write_bytes(bytes(8) + index.read_bytes()[8:])
    log = bench.open(LogConfig(retention_ms=-1, retention_bytes=500), recovery_point=25, clean=True)
    assert log.delete_old_segments(25) == 2
    log.config = LogConfig(retention_ms=1_000)
    bench.clock.now_ms += 900
    assert log.delete_old_segments(25) == 0
    bench.clock.now_ms += 101
    assert log.delete_old_segments(25) == 1


def test_a_segment_of_damaged_batches_goes_when_its_index_says_that_it_is_old(bench: Bench) -> None:
    closed_log(bench, timestamp=1_000)
    bench.segment_file(0).write_bytes(bytes(1_000))
    log = bench.open(LogConfig(retention_ms=100), recovery_point=25, clean=True)
    assert log.delete_old_segments(25) == 3


def test_deleted_segments_stay_for_a_while_by_another_name(bench: Bench) -> None:
    config = LogConfig(segment_bytes=1_000, retention_bytes=600, retention_ms=-1, file_delete_delay_ms=5_000)
    log = filled(bench, 25, config)
    assert log.delete_old_segments(25) == 1
    names = {path.name for path in (bench.directory / "events-3").iterdir()}
    assert "00000000000000000000.log.deleted" in names
    assert not {"00000000000000000000.log", "00000000000000000000.index"} & names
    assert log.late_removals.take_due(bench.clock.now_ms + 4_999) == []
    due = log.late_removals.take_due(bench.clock.now_ms + 5_000)
    remove_files(bench.disk, [*due, "never/there"])
    assert not list((bench.directory / "events-3").glob("*.deleted"))


def test_what_waits_for_its_removal_is_gone_after_a_stop_or_a_crash(bench: Bench) -> None:
    config = LogConfig(segment_bytes=1_000, retention_bytes=600, retention_ms=-1)
    log = filled(bench, 25, config)
    log.delete_old_segments(25)
    bench.open(config, recovery_point=25)
    assert not list((bench.directory / "events-3").glob("*.deleted"))
    log = filled(bench, 50, config)
    assert log.delete_old_segments(50) > 0
    log.close()
    assert not list((bench.directory / "events-3").glob("*.deleted"))


def test_each_segment_is_rolled_a_little_earlier_than_its_age_and_not_all_at_once() -> None:
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=4_000)
    ages = {config.roll_age_ms(f"/data/t-{n}/00000000000000000000.log") for n in range(100)}
    assert len(ages) > 90
    assert min(ages) > 6_000
    assert max(ages) <= 10_000
    assert config.roll_age_ms("a") == config.roll_age_ms("a")
    assert LogConfig(segment_ms=10_000).roll_age_ms("a") == 10_000
    assert LogConfig(segment_ms=10, segment_jitter_ms=4_000).roll_age_ms("a") > 0


def test_records_without_time_are_not_as_old_as_time_itself(bench: Bench) -> None:
    log = filled(bench, 25, LogConfig(segment_bytes=1_000, retention_ms=100), timestamp=-1)
    assert log.delete_old_segments(25) == 0
    bench.clock.now_ms += 101
    assert log.delete_old_segments(25) == 2


# ---- flushing ----------------------------------------------------------------------------------------------


def test_a_flush_raises_the_recovery_point(bench: Bench) -> None:
    log = filled(bench, 25)
    assert log.recovery_point == 0
    assert log.flush() == 25
    flush = log.begin_flush()
    assert (flush.files, flush.paths, flush.directories) == ((), (), ())


def test_a_flush_that_was_overtaken_by_a_truncation_vouches_for_nothing(bench: Bench) -> None:
    log = filled(bench, 5)
    flush = log.begin_flush()
    flush.run()
    log.truncate_to(2)
    bench.append(log, epoch=1)
    assert log.finish_flush(flush) == 0
    assert log.flush() == 3


def test_appends_during_a_flush_wait_for_the_next(bench: Bench) -> None:
    log = filled(bench, 5)
    flush = log.begin_flush()
    bench.append(log)
    flush.run()
    assert log.finish_flush(flush) == 5
    assert log.flush() == 6


def test_after_a_failed_fsync_no_flush_is_believed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(bench, 5)

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", of_this_thread(os.fsync, broken))
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    monkeypatch.undo()
    assert log.recovery_point == 0
    with pytest.raises(LogDirectoryError, match="earlier fsync"):
        log.flush()


# ---- files and settings ------------------------------------------------------------------------------------


def test_few_sealed_segments_stay_open(bench: Bench) -> None:
    before = len(os.listdir("/dev/fd"))
    log = filled(bench, 200)
    assert len(log.segment_bases) == 20
    for offset in range(0, 200, 7):
        bench.read(log, offset, 100)
    assert len(os.listdir("/dev/fd")) - before <= 5


def test_the_topic_s_id_is_kept_as_kafka_keeps_it(bench: Bench) -> None:
    topic_id = uuid.UUID("dc36f940-b4aa-4994-a27a-2de2b0254479")
    path = f"{bench.directory}/events-3"

    def open_log(given: uuid.UUID | None) -> Log:
        return Log.open(
            path,
            ("events", 3),
            given,
            SMALL,
            LocalDisk(),
            bench.clock,
            recovery_point=0,
            clean=False,  # type: ignore[arg-type]
        )

    assert open_log(topic_id).topic_id == topic_id
    with open(f"{path}/partition.metadata", encoding="ascii") as file:
        assert file.read() == "version: 0\ntopic_id: 3Db5QLSqSZSiei3isCVEeQ\n"
    assert open_log(None).topic_id == topic_id
    with pytest.raises(LogDirectoryError, match="deleted topic"):
        open_log(uuid.UUID(int=5))


def test_a_log_is_deleted_as_a_whole(bench: Bench) -> None:
    log = filled(bench, 25)
    log.delete()
    assert os.listdir(bench.directory) == []


def test_settings_come_from_the_topic() -> None:
    topic = BrokerConfig.parse({"log.roll.ms": "5"}).topic(
        {"segment.bytes": "99", "cleanup.policy": "compact"}
    )
    config = LogConfig.of(topic)
    assert (config.segment_ms, config.segment_bytes, config.deletes) == (5, 99, False)


def test_a_missing_index_is_made_again_when_it_is_needed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    filled(bench, 25).close()
    for suffix in (".index", ".timeindex"):
        bench.segment_file(0, suffix).unlink()
    log = bench.open(SMALL, recovery_point=25, clean=True)
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert [header.base_offset for header in bench.headers(log)] == list(range(25))
    assert str(bench.segment_file(0)) in caplog.text


@pytest.mark.parametrize("damage", ["cut", "zeros", "shifted", "offsets", "foreign"])
def test_a_wrong_index_changes_nothing(bench: Bench, damage: str) -> None:
    filled(bench, 25).close()
    for base in (0, 10, 20):
        path = bench.segment_file(base, ".index")
        data = path.read_bytes()
        assert len(data) >= 8
        broken = {
            "cut": data[:-3],
            "zeros": b"\0" * len(data),
            "shifted": b"".join(
                data[at : at + 7] + bytes([data[at + 7] + 1]) for at in range(0, len(data), 8)
            ),
            "offsets": b"".join(
                data[at : at + 3] + bytes([data[at + 3] - 1]) + data[at + 4 : at + 8]
                for at in range(0, len(data), 8)
            ),
            "foreign": (5).to_bytes(4, "big") + (7).to_bytes(4, "big"),
        }[damage]
        path.write_bytes(broken)
    log = bench.open(SMALL, recovery_point=25, clean=True)
    assert log.log_end_offset == 25
    for offset in range(25):
        assert split(bench.read(log, offset, 100))[0][1].base_offset == offset
        assert len(bench.read(log, 0, max_offset=offset)) == 100 * offset
