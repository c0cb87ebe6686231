"""A log whose first records are in a remote store only: two starts, over deletions, restarts and crashes."""

from typing import Any

import pytest

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EarlierHistory, EpochEntry
from sparklog.model.ids import LeaderEpoch, Offset
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.small_files.history_start import HISTORY_START

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


def filled(bench: Bench, config: LogConfig = SMALL) -> Log:
    """Ten batches of 100 bytes in a segment: segments at 0, 10, 20; epoch 3 begins at 5, epoch 4 at 15."""
    log: Log = bench.open(config)
    for offset in range(25):
        bench.append(log, epoch=2 + (offset >= 5) + (offset >= 15), producer=(7, 0, offset))
    return log


def starts(log: Log) -> tuple[int, int]:
    log.check_invariants()
    return log.log_start_offset, log.local_start_offset


def epochs(log: Log) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in log.epochs.entries]


def file_of(bench: Bench) -> Any:
    return bench.directory / "events-3" / HISTORY_START


def test_a_log_has_one_start_while_nothing_is_deleted_from_its_disk_alone(bench: Bench) -> None:
    log = filled(bench)
    assert starts(log) == (0, 0)
    log.raise_log_start(12)
    assert starts(log) == (12, 12)
    assert log.delete_old_segments(25) == 1
    assert (starts(log), log.segment_bases) == ((12, 12), [10, 20])
    assert not file_of(bench).exists()


@pytest.mark.parametrize(("offset", "local_start"), [(9, 0), (10, 10), (19, 10), (20, 20), (25, 20)])
def test_a_local_deletion_takes_whole_sealed_segments_and_leaves_the_log_start(
    bench: Bench, offset: int, local_start: int
) -> None:
    log = filled(bench)
    assert log.delete_local_segments(offset) == local_start // 10
    assert starts(log) == (0, local_start)
    assert epochs(log) == [(2, 0), (3, 5), (4, 15)]
    assert log.read(max(0, local_start - 1), 1_000, 25, at_least_one_batch=True) is None or not local_start
    assert bench.read(log, local_start)


@pytest.mark.parametrize("clean", [True, False])
def test_both_starts_and_all_epochs_outlive_a_stop_and_a_crash(bench: Bench, clean: bool) -> None:
    log = filled(bench)
    log.flush()
    log.delete_local_segments(20)
    if clean:
        log.close()
    again = bench.open(SMALL, recovery_point=25, clean=clean, high_watermark=25)
    assert starts(again) == (0, 20)
    assert epochs(again) == [(2, 0), (3, 5), (4, 15)]
    assert [batch.first_offset for batch in again.producers.producers[7].batches] == [20, 21, 22, 23, 24]
    assert again.corruption is None


def test_a_log_start_that_rises_within_the_remote_part_leaves_the_local_start(bench: Bench) -> None:
    log = filled(bench)
    log.delete_local_segments(20)
    log.raise_log_start(7)
    assert starts(log) == (7, 20)
    assert starts(bench.open(SMALL, recovery_point=0)) == (7, 20)
    assert epochs(log) == [(3, 7), (4, 15)]


def test_a_log_start_that_rises_beyond_the_remote_part_takes_the_local_start_along(bench: Bench) -> None:
    log = filled(bench)
    log.delete_local_segments(10)
    assert file_of(bench).exists()
    log.raise_log_start(22)
    assert starts(log) == (22, 22)
    assert not file_of(bench).exists()
    assert log.delete_old_segments(25) == 1
    assert log.segment_bases == [20]


def test_retention_by_age_and_size_spares_a_log_with_records_in_a_store(bench: Bench) -> None:
    log = filled(bench, LogConfig(segment_bytes=1_000, retention_ms=1, retention_bytes=10))
    log.delete_local_segments(10)
    bench.clock.now_ms += 10_000_000
    assert log.delete_old_segments(25) == 0
    assert starts(log) == (0, 10)


def test_a_log_begins_anew_with_the_history_of_its_leader(bench: Bench) -> None:
    log = filled(bench)
    entries = (EpochEntry(LeaderEpoch(1), Offset(3)), EpochEntry(LeaderEpoch(6), Offset(90)))
    log.truncate_fully_and_start_at(500, ProducerStates(), EarlierHistory(3, entries))
    assert (starts(log), log.log_end_offset) == ((3, 500), 500)
    bench.append(log, epoch=8)
    for again in (log, bench.open(SMALL, recovery_point=0)):
        assert starts(again) == (3, 500)
        assert epochs(again) == [(1, 3), (6, 90), (8, 500)]


def test_a_log_that_begins_anew_without_history_forgets_the_one_it_had(bench: Bench) -> None:
    log = filled(bench)
    log.delete_local_segments(20)
    log.truncate_fully_and_start_at(500)
    assert (starts(log), epochs(log)) == ((500, 500), [])
    assert starts(bench.open(SMALL, recovery_point=0)) == (500, 500)


def test_a_truncation_below_the_local_start_keeps_what_the_store_has_before_it(bench: Bench) -> None:
    log = filled(bench)
    log.delete_local_segments(20)
    assert log.truncate_to(12) == 12
    assert starts(log) == (0, 12)
    assert epochs(log) == [(2, 0), (3, 5)]


def test_a_truncation_below_the_log_start_keeps_nothing(bench: Bench) -> None:
    log = filled(bench)
    log.delete_local_segments(20)
    log.raise_log_start(7)
    log.truncate_to(4)
    assert (starts(log), epochs(log)) == ((4, 4), [])


@pytest.mark.parametrize("damage", [b"", b"0\n1\nx\n", b"0\n2\n3\n", b"0\n1\n-5\n", b"1\n1\n0\n", b"\xff"])
def test_with_a_damaged_file_the_log_begins_too_early_and_not_too_late(bench: Bench, damage: bytes) -> None:
    log = filled(bench)
    log.flush()
    log.delete_local_segments(20)
    file_of(bench).write_bytes(damage)
    again = bench.open(SMALL, recovery_point=25, high_watermark=25)
    assert starts(again) == (0, 20)
    assert epochs(again) == epochs(log)
    assert again.raise_log_start(7)
    assert starts(bench.open(SMALL, recovery_point=25, high_watermark=25)) == (7, 20)


def test_after_a_crash_before_the_segments_went_the_log_begins_where_it_did(bench: Bench) -> None:
    log = filled(bench)
    log.flush()
    file_of(bench).write_bytes(b"0\n1\n0\n")
    again = bench.open(SMALL, recovery_point=25, high_watermark=25)
    assert starts(again) == (0, 0)
    assert not file_of(bench).exists()
