"""A setting that changes while a broker runs has its effect on logs that exist, and loses it when deleted.

Limits of messages are seen by a client in ``tests/clients/test_settings_of_running_brokers.py``, those of
connections in ``tests/broker/life``, throttles in ``test_throttles``, elections in ``tests/core/controller``,
conversion for old readers in ``tests/clients/test_old_formats.py``, the rate of copying to a remote store in
``tests/cluster/test_remote_copy.py``, the floor of free space in ``tests/cluster/test_free_space.py``.
"""

import threading
from pathlib import Path

import pytest

from sparklog.broker.life.cleaner_threads import CleanerThreads
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.settings_table import DYNAMIC_BROKER_SETTINGS
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from tests.broker.cleaner_room import Room, clean_all

UNCOMPACTED = {"log.cleanup.policy": "delete", "log.segment.bytes": "1000000"}
HOUR_MS = 3_600_000


@pytest.fixture
def room(tmp_path, clock):
    return Room(tmp_path, clock, UNCOMPACTED)


@pytest.fixture
def partition(room):
    return room.lead("t")


def segments(partition):
    return len(partition.log.segments)


def put(room, partition, *, timestamp_ms=None):
    """One record, stamped now unless told otherwise."""
    stamp = room.clock.now_ms if timestamp_ms is None else timestamp_ms
    batch = bytearray(build_records_batch([Record(b"k", b"v" * 100)], now_ms=stamp))
    assert partition.leader_append.append(AppendRequest(batch, split(batch), 1), 0).error is ErrorCode.none


def test_size_and_age_of_segments(room, partition):
    room.put(partition, 10)
    assert segments(partition) == 1
    room.configure(log_segment_bytes=300)
    room.put(partition, 10)
    assert segments(partition) > 3
    room.configure(log_roll_ms=1_000)
    many = segments(partition)
    put(room, partition)
    room.clock.now_ms += 2_000
    put(room, partition)
    put(room, partition, timestamp_ms=room.clock.now_ms + 1)
    assert many < segments(partition) <= many + 2


def test_jitter_of_segments(room, partition):
    room.configure(log_roll_ms=HOUR_MS, log_roll_jitter_ms=HOUR_MS)
    ages = {partition.log.config.roll_age_ms(f"{number}.log") for number in range(20)}
    assert min(ages) < HOUR_MS / 2 < max(ages) < HOUR_MS


def test_indexes_of_new_segments_are_denser_and_full_sooner(room, partition):
    room.put(partition, 1)
    room.configure(log_index_interval_bytes=0, log_index_size_max_bytes=24)
    partition.log.roll()
    room.put(partition, 20)
    assert segments(partition) > 4


def test_retention_by_age_and_by_size(room, partition):
    room.configure(log_segment_bytes=300)
    for _ in range(10):
        put(room, partition)
    room.parts.chores.delete_old_segments()
    before = segments(partition)
    room.configure(log_segment_bytes=300, log_retention_bytes=600)
    room.parts.chores.delete_old_segments()
    assert 1 < segments(partition) < before
    room.configure(log_retention_ms=1_000)
    room.clock.now_ms += HOUR_MS
    room.parts.chores.delete_old_segments()
    assert (segments(partition), partition.log.log_start_offset) == (1, 10)


@pytest.mark.parametrize(("delay_ms", "are_gone"), [(0, True), (HOUR_MS, False)])
def test_delay_before_files_are_removed(room, partition, delay_ms, are_gone):
    room.configure(log_segment_bytes=300, log_retention_ms=1, log_segment_delete_delay_ms=delay_ms)
    for _ in range(5):
        put(room, partition)
    room.clock.now_ms += 1_000
    room.parts.chores.delete_old_segments()
    room.parts.chores.remove_late_files()
    assert (not list((room.folder / "t-0").glob("*.deleted"))) is are_gone


def test_flushes_by_count_and_by_age(room, partition):
    room.put(partition, 3)
    assert partition.log.recovery_point == 0
    room.configure(log_flush_interval_messages=2)
    room.put(partition, 2)
    assert partition.log.recovery_point >= 4
    room.configure(log_flush_interval_ms=1_000)
    room.put(partition, 1)
    room.clock.now_ms += 2_000
    room.parts.chores.flush_by_time()
    assert partition.log.recovery_point == partition.log.log_end_offset


def test_a_policy_of_compaction_and_its_rules(room, partition):
    room.put(partition)
    partition.log.roll()
    assert room.cleaner.states() == []
    room.configure(log_cleanup_policy="compact", log_cleaner_min_cleanable_ratio=0.5)
    assert room.state("t").is_due
    room.configure(log_cleanup_policy="compact", log_cleaner_min_compaction_lag_ms=2**62)
    assert room.cleaner.next() is None
    room.configure(log_cleanup_policy="compact")
    clean_all(room.cleaner)
    room.put(partition, 5)
    partition.log.roll()
    assert not room.state("t").is_due
    room.configure(log_cleanup_policy="compact", log_cleaner_min_cleanable_ratio=0)
    assert room.state("t").is_due
    room.configure(log_cleanup_policy="compact", log_cleaner_max_compaction_lag_ms=1)
    assert room.state("t").is_due


@pytest.mark.parametrize(("retention_ms", "stays"), [(HOUR_MS, True), (0, False)])
def test_tombstones_stay_as_long_as_the_present_setting_says(room, partition, retention_ms, stays):
    batch = bytearray(build_records_batch([Record(b"gone", None)], now_ms=1))
    partition.leader_append.append(AppendRequest(batch, split(batch), 1), 0)
    room.configure(
        log_cleanup_policy="compact",
        log_cleaner_min_cleanable_ratio=0,
        log_cleaner_delete_retention_ms=retention_ms,
    )
    for _ in range(2):
        room.put(partition, 5, keys=1)
        partition.log.roll()
        clean_all(room.cleaner)
        room.clock.now_ms += 1
    assert room.record_count(partition) == 1 + stays


def test_memory_of_the_next_round(room):
    room.configure(
        log_cleaner_dedupe_buffer_size=2_000_000,
        log_cleaner_io_buffer_size=5_000,
        log_cleaner_io_buffer_load_factor=0.25,
    )
    memory = room.cleaner.memory
    assert (memory.map_bytes, memory.chunk_bytes, memory.load_factor) == (2_000_000, 5_000, 0.25)


def test_a_greater_rate_ends_the_pause_of_a_cleaner(tmp_path, clock):
    room = Room(tmp_path, clock, {"log.cleaner.io.max.bytes.per.second": "1"})
    partition, rests = room.lead("t"), threading.Event()
    room.put(partition)
    pause_ms, cleaned, done = room.cleaner.pause_ms, threading.Event(), room.cleaner.done

    def pause(done_bytes):
        pause = pause_ms(done_bytes)
        if pause:
            rests.set()
        return pause

    def tell(*args):
        done(*args)
        cleaned.set()

    room.cleaner.pause_ms, room.cleaner.done = pause, tell
    threads = CleanerThreads(room.cleaner, room.parts.settings)
    threads.start()
    assert rests.wait(60)
    room.configure(log_cleaner_io_max_bytes_per_second=1e12)
    assert cleaned.wait(60)
    threads.close()


def test_a_shorter_backoff_ends_the_rest_of_a_cleaner(tmp_path, clock):
    room = Room(tmp_path, clock, {"log.cleaner.backoff.ms": str(HOUR_MS)})
    looks, looked_twice, look = [], threading.Event(), room.cleaner.next

    def count():
        looks.append(look())
        if len(looks) > 2:
            looked_twice.set()
        return looks[-1]

    room.cleaner.next = count
    threads = CleanerThreads(room.cleaner, room.parts.settings)
    threads.start()
    room.configure(log_cleaner_backoff_ms=1)
    assert looked_twice.wait(60)
    threads.close()


def test_producers_are_forgotten_after_the_present_time(room, partition):
    batch = bytearray(
        build_records_batch([Record(b"k", b"v")], now_ms=1, producer_id=7, producer_epoch=0, base_sequence=0)
    )
    partition.leader_append.append(AppendRequest(batch, split(batch), 1), 0)
    room.clock.now_ms += HOUR_MS
    room.parts.chores.expire_producers()
    assert list(partition.log.producers.producers) == [7]
    room.configure(producer_id_expiration_ms=1_000)
    room.parts.chores.expire_producers()
    assert list(partition.log.producers.producers) == []


def test_a_setting_that_is_deleted_gives_way_to_that_of_the_start(room, partition):
    room.configure(log_segment_bytes=300)
    room.configure()
    room.put(partition, 20)
    assert segments(partition) == 1


def test_a_setting_that_cannot_be_used_is_named_and_the_others_take_effect(room, partition, caplog):
    room.configure(log_segment_bytes=300, log_retention_ms="many")
    assert "log.retention.ms='many': must be a whole number" in caplog.text
    room.put(partition, 10)
    assert segments(partition) > 3


def test_every_setting_that_may_change_has_a_test_of_its_effect():
    """Here, or where the docstring of this module says."""
    text = Path(__file__).read_text()
    elsewhere = {
        *(f"compression.{name}" for name in ("type", "gzip.level", "lz4.level", "zstd.level")),
        *(f"{side}.replication.throttled.rate" for side in ("leader", "follower")),
        *(f"max.connections{rest}" for rest in ("", ".per.ip", ".per.ip.overrides")),
        "max.connection.creation.rate", "log.dirs.free.min.bytes",
        "log.message.downconversion.enable",
        *(f"log.message.timestamp.{rest}" for rest in ("type", "before.max.ms", "after.max.ms")),
        "message.max.bytes", "min.insync.replicas", "remote.log.manager.copy.max.bytes.per.second",
        "unclean.leader.election.enable",
    }  # fmt: skip
    untested = {name for name in DYNAMIC_BROKER_SETTINGS - elsewhere if name.replace(".", "_") not in text}
    assert untested == set()
