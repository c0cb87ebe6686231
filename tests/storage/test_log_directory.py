"""A log directory: clean stops and boots, its logs, and what its checkpoints may claim."""

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.recovery.recovery_progress import RecoveryProgress, bytes_to_check
from sparklog.storage.small_files import checkpoints
from tests.storage.directories import SMALL, TOPIC_ID, A, B, Bench, fill, load, open_directory, with_two_logs

# ---- clean stops and boots ---------------------------------------------------------------------------------


@pytest.mark.scenario("S56", "A clean marker counts once; a crash while loading leaves none (KAFKA-10471).")
def test_a_clean_stop_is_known_once_by_its_broker_epoch(bench: Bench) -> None:
    with_two_logs(bench).close(clean_epoch=4711)
    directory = open_directory(bench)
    assert directory.take_clean_marker() == 4711
    assert directory.take_clean_marker() == 4711
    directory.close()
    assert open_directory(bench).take_clean_marker() is None


@pytest.mark.bug(
    "B40", "words", "A clean stop proves nothing after a reboot, because the first start was interrupted."
)
def test_a_start_that_comes_to_no_end_leaves_word_of_the_clean_stop_before_it(bench: Bench) -> None:
    with_two_logs(bench).close(clean_epoch=4711)
    for _ in range(3):
        directory = open_directory(bench, boot="boot-2")
        assert directory.left_clean_by() == 4711
        directory.close()
    assert open_directory(bench, boot="boot-2").take_clean_marker() is None


def test_that_word_is_of_no_use_on_another_boot_or_when_it_is_damaged(bench: Bench) -> None:
    with_two_logs(bench).close(clean_epoch=4711)
    directory = open_directory(bench, boot="boot-2")
    directory.take_clean_marker()
    directory.close()
    directory = open_directory(bench, boot="boot-3")
    assert directory.left_clean_by() is None
    directory.close()
    (bench.directory / "logs" / "found-clean").write_bytes(b"{}")
    assert open_directory(bench, boot="boot-2").left_clean_by() is None


def test_a_later_clean_stop_is_told_and_not_the_one_that_was_noted(bench: Bench) -> None:
    with_two_logs(bench).close(clean_epoch=1)
    directory = open_directory(bench)
    load(directory)
    directory.close(clean_epoch=2)
    for _ in range(2):
        directory = open_directory(bench)
        assert directory.left_clean_by() == 2
        directory.close()


def test_after_an_unfinished_start_every_batch_is_read_and_damage_is_corruption(
    bench: Bench,
) -> None:
    with_two_logs(bench).close(clean_epoch=1)
    directory = open_directory(bench, boot="boot-2")
    directory.take_clean_marker()
    directory.close()
    (bench.directory / "logs" / "recovery-point-offset-checkpoint").unlink()
    path = bench.directory / "logs" / str(A) / "00000000000000000010.log"
    data = bytearray(path.read_bytes())
    data[280] ^= 1
    path.write_bytes(data)
    assert load(open_directory(bench, boot="boot-2"))[A].corruption is not None


def test_after_a_clean_stop_all_logs_are_as_they_were(bench: Bench) -> None:
    with_two_logs(bench).close(clean_epoch=1)
    logs = load(open_directory(bench, boot="boot-2"))
    assert {tp: (log.log_end_offset, log.recovery_point) for tp, log in logs.items()} == {
        A: (15, 15),
        B: (15, 15),
    }
    assert logs[A].topic_id == TOPIC_ID
    assert logs[A].topic_partition == A


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"brokerEpoch": "x"}', b"\xff\0"])
def test_a_damaged_clean_marker_is_no_clean_marker(
    bench: Bench, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with_two_logs(bench).close(clean_epoch=1)
    (bench.directory / "logs" / ".kafka_cleanshutdown").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        directory = open_directory(bench)
        assert directory.take_clean_marker() is None
    assert ".kafka_cleanshutdown" in caplog.text
    assert not (bench.directory / "logs" / ".kafka_cleanshutdown").exists()


@pytest.mark.kafka_bug(
    "K29",
    "KAFKA-10471",
    "A crash while logs loaded left the clean marker, and the next start recovered nothing.",
)
@pytest.mark.scenario("S56")
def test_kafka_10471_loading_takes_the_marker_away_before_it_opens_a_log(bench: Bench) -> None:
    """KAFKA-10471: a crash while loading must not pass for a clean stop at the next start."""
    with_two_logs(bench).close(clean_epoch=1)
    directory = open_directory(bench)

    def crash(topic: str) -> LogConfig:
        raise RuntimeError(topic)

    with pytest.raises(RuntimeError):
        directory.load_logs(crash)
    directory.close()
    assert open_directory(bench).take_clean_marker() is None


def test_the_boot_is_recorded_only_after_all_logs_are_recovered(bench: Bench) -> None:
    with_two_logs(bench).close()
    directory = open_directory(bench, boot="boot-2")
    assert not directory.same_boot

    def crash(topic: str) -> LogConfig:
        raise RuntimeError(topic)

    with pytest.raises(RuntimeError):
        directory.load_logs(crash)
    directory.close()
    directory = open_directory(bench, boot="boot-2")
    assert not directory.same_boot
    load(directory)
    assert directory.same_boot
    directory.close()


def test_the_same_damage_is_torn_after_a_reboot_and_corruption_without(bench: Bench) -> None:
    with_two_logs(bench).close()
    path = bench.directory / "logs" / str(A) / "00000000000000000010.log"
    data = bytearray(path.read_bytes())
    data[280] ^= 1
    path.write_bytes(data)
    directory = open_directory(bench)
    corruption = load(directory)[A].corruption
    assert corruption is not None
    assert corruption.offset == 12
    directory.close()
    (path.parent / "corruption").unlink()
    log = load(open_directory(bench, boot="boot-2"))[A]
    assert (log.corruption, log.log_end_offset) == (None, 12)


# ---- logs --------------------------------------------------------------------------------------------------


def test_after_a_failed_fsync_what_was_never_synced_is_written_anew_and_nothing_else(bench: Bench) -> None:
    directory = with_two_logs(bench)
    log = next(iter(directory.logs.values()))
    log.flush()
    directory.checkpoint_recovery_points()
    log.roll()
    fill(bench, log, 3)
    before, end = _files_of(log), log.log_end_offset
    directory.close()
    again = load(open_directory(bench), is_suspect=True)[log.topic_partition]
    after = _files_of(again)
    assert again.log_end_offset == end
    assert {name for name in before if before[name] != after[name]} == {max(before)}


def test_after_a_failed_fsync_indexes_sealed_since_the_last_flush_are_not_trusted(
    bench: Bench,
) -> None:
    directory = open_directory(bench)
    log = directory.create_log(A, TOPIC_ID, SMALL)
    for number in range(10):
        bench.append(log, timestamp=1_000 + number)
    log.flush()
    directory.checkpoint_recovery_points()
    bench.append(log, timestamp=1_010)
    assert log.segment_bases == [0, 10]
    directory.close()
    for path in Path(log.directory).glob("*0.timeindex"):
        path.write_bytes(b"")
    again = load(open_directory(bench), is_suspect=True)[A]
    assert again.segments[0].greatest_timestamp() == (1_009, 9)


def _files_of(log: Log) -> dict[str, int]:
    """Segment files and their inodes."""
    files = Path(log.directory).glob("*.log")
    return {file.name: file.stat().st_ino for file in sorted(files)}


def test_logs_can_be_recovered_in_parallel(bench: Bench) -> None:
    directory = open_directory(bench)
    for number in range(20):
        fill(bench, directory.create_log(TopicPartition("t", number), TOPIC_ID, SMALL), number)
    directory.close()

    class Pool:
        def __init__(self, pool: ThreadPoolExecutor) -> None:
            self.pool = pool

        def submit(self, work: Callable[[], None]) -> None:
            self.pool.submit(work)

    with ThreadPoolExecutor(4) as pool:
        directory = open_directory(bench)
        logs = directory.load_logs(lambda topic: SMALL, executor=Pool(pool))
        assert {tp.partition: log.log_end_offset for tp, log in logs.items()} == {n: n for n in range(20)}
        directory.close()
        directory = open_directory(bench)
        with pytest.raises(ZeroDivisionError):
            directory.load_logs(lambda topic: LogConfig(segment_bytes=1 // 0), executor=Pool(pool))


def test_a_log_is_created_once(bench: Bench) -> None:
    directory = with_two_logs(bench)
    with pytest.raises(LogDirectoryError, match="exists already"):
        directory.create_log(A, TOPIC_ID, SMALL)


def test_a_deleted_log_leaves_nothing_that_its_namesake_could_inherit(bench: Bench) -> None:
    directory = with_two_logs(bench)
    directory.logs[A].flush()
    directory.checkpoint_recovery_points()
    directory.write_high_watermarks({A: 15, B: 15})
    directory.delete_log(A)
    log = directory.create_log(A, uuid.UUID(int=78), SMALL)
    fill(bench, log, 2)
    directory.close()
    directory = open_directory(bench)
    assert directory.read_high_watermarks() == {B: 15}
    assert (load(directory)[A].log_end_offset, directory.logs[A].corruption) == (2, None)


def test_what_is_left_of_an_interrupted_deletion_goes_at_the_next_start(bench: Bench) -> None:
    directory = with_two_logs(bench)
    directory.close()
    logs = bench.directory / "logs"
    (logs / str(A)).rename(logs / f"a.b-c-0.{TOPIC_ID.hex}-delete")
    (logs / "lost+found").mkdir()
    (logs / "x-delete").mkdir()
    assert set(load(open_directory(bench))) == {B}
    assert not list(logs.glob(f"*.{TOPIC_ID.hex}-delete"))
    assert (logs / "lost+found").exists()
    assert (logs / "x-delete").exists()


# ---- checkpoints -------------------------------------------------------------------------------------------


def read_back(bench: Bench, name: str) -> dict[TopicPartition, int]:
    return dict(checkpoints.read_offsets(LocalDisk(), str(bench.directory / "logs" / name)))


def test_recovery_points_and_log_starts_are_written_for_all_logs(bench: Bench) -> None:
    directory = with_two_logs(bench)
    directory.logs[A].flush()
    directory.logs[B].flush()
    directory.logs[B].raise_log_start(4)
    directory.checkpoint_recovery_points()
    assert read_back(bench, checkpoints.RECOVERY_POINTS) == {A: 15, B: 15}
    assert read_back(bench, checkpoints.LOG_STARTS) == {B: 4}
    directory.close()
    logs = load(open_directory(bench))
    assert (logs[A].recovery_point, logs[B].log_start_offset) == (15, 4)


@pytest.mark.bug("B47", "records", "A power cut makes a replica begin anew without producer states.")
def test_no_log_start_is_written_that_lies_behind_what_is_synced(bench: Bench) -> None:
    """A power cut could leave nothing in front of it: the log would begin there by itself, and ask nobody."""
    directory = with_two_logs(bench)
    directory.logs[A].raise_log_start(4)
    directory.checkpoint_recovery_points()
    assert read_back(bench, checkpoints.LOG_STARTS) == {}
    directory.logs[A].flush()
    directory.checkpoint_recovery_points()
    assert read_back(bench, checkpoints.LOG_STARTS) == {A: 4}


def test_high_watermarks_come_back(bench: Bench) -> None:
    directory = with_two_logs(bench)
    directory.write_high_watermarks({A: 3})
    directory.write_high_watermarks({B: 99, TopicPartition("none", 0): 5})
    directory.close()
    assert open_directory(bench).read_high_watermarks() == {A: 3, B: 15}


def test_truncation_lowers_every_checkpoint_before_it_cuts(bench: Bench) -> None:
    """Otherwise a crash right after would make the truncated log look like a damaged one."""
    directory = with_two_logs(bench)
    directory.logs[A].flush()
    directory.checkpoint_recovery_points()
    directory.write_high_watermarks({A: 14, B: 14})
    directory.logs[A].truncate_to(7)
    assert read_back(bench, checkpoints.RECOVERY_POINTS) == {A: 7, B: 0}
    assert read_back(bench, checkpoints.HIGH_WATERMARKS) == {A: 7, B: 14}
    directory.close()
    logs = load(open_directory(bench))
    assert (logs[A].corruption, logs[A].log_end_offset) == (None, 7)


def test_an_end_below_the_high_watermark_is_corruption(bench: Bench) -> None:
    directory = with_two_logs(bench)
    directory.write_high_watermarks({A: 14})
    directory.close()
    path = bench.directory / "logs" / str(A) / "00000000000000000010.log"
    path.write_bytes(path.read_bytes()[:-150])
    corruption = load(open_directory(bench))[A].corruption
    assert corruption is not None
    assert corruption.offset == 13


@pytest.mark.bug("B68", "away", "A log that a power cut shortened is marked corrupt by a later start.")
def test_a_process_killed_soon_after_a_power_cut_leaves_no_log_that_looks_damaged(bench: Bench) -> None:
    """The first start cut what the power cut had torn, below the high watermark on disk: it lowers that."""
    directory = with_two_logs(bench)
    directory.write_high_watermarks({A: 15, B: 15})
    assert directory.write_cleaned(A, 12, 0)
    tail = sorted((bench.directory / "logs" / str(A)).glob("*.log"))[-1]
    tail.write_bytes(b"")
    directory.close()

    after_the_cut = open_directory(bench, boot="boot-2")
    ends = {tp: log.log_end_offset for tp, log in load(after_the_cut).items()}
    assert ends == {A: 10, B: 15}
    assert after_the_cut.read_high_watermarks() == {A: 10, B: 15}
    assert after_the_cut.cleaned_up_to(A) == 10
    after_the_cut.close()

    again = load(open_directory(bench, boot="boot-2"))
    assert [log.corruption for log in again.values()] == [None, None]


def test_garbage_in_the_checkpoints_costs_a_scan_and_no_record(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    directory = with_two_logs(bench)
    directory.write_high_watermarks({A: 14, B: 14})
    directory.close(clean_epoch=1)
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, checkpoints.LOG_STARTS):
        Path(bench.directory / "logs" / name).write_bytes(b"0\n7\nrubbish")
    with caplog.at_level(logging.WARNING):
        directory = open_directory(bench)
    assert caplog.text.count("damaged checkpoint") == 3
    assert directory.read_high_watermarks() == {}
    assert {log.log_end_offset for log in load(directory).values()} == {15}


def test_a_recovery_tells_how_far_it_is_and_a_clean_start_has_nothing_to_tell(bench: Bench) -> None:
    config = LogConfig(segment_bytes=1_000)
    first = LogDirectory.open(str(bench.directory / "data"), 1, "c", bench.disk, bench.clock, boot_id="b")
    for number in range(3):
        log = first.create_log(TopicPartition("t", number), NO_TOPIC_ID, config)
        for _ in range(25):
            bench.append(log)
        if number:
            log.flush()
    first.checkpoint_recovery_points()
    first.close()
    told: list[str] = []
    again = LogDirectory.open(str(bench.directory / "data"), 1, "c", bench.disk, bench.clock, boot_id="b")

    def tell(text: str) -> None:
        told.append(text.removesuffix(str(bench.directory / "data")))

    again.load_logs(lambda _topic: config, tell=tell)
    assert told == ["recovering 3 of 3 logs, 0.0 of 0.0 GB in "]
    again.close(clean_epoch=5)
    clean = LogDirectory.open(str(bench.directory / "data"), 1, "c", bench.disk, bench.clock, boot_id="b")
    clean.load_logs(lambda _topic: config, tell=tell)
    assert len(told) == 1
    clean.close()


def test_what_is_to_be_checked_is_known_before_it_is_read(bench: Bench) -> None:
    log = bench.open(LogConfig(segment_bytes=1_000))
    for _ in range(25):
        bench.append(log)
    directory = str(bench.directory / "events-3")
    assert [bytes_to_check(bench.disk, directory, point) for point in (0, 9, 10, 25)] == [
        2_500,
        2_500,
        1_500,
        500,
    ]


def test_progress_is_told_once_a_second_and_at_the_end(bench: Bench) -> None:
    told: list[str] = []
    progress = RecoveryProgress("/data", 2, 8_000_000_000, bench.clock, told.append)
    progress.on_bytes(1_000_000_000)
    bench.clock.now_ms += 1_000
    progress.on_bytes(200_000_000)
    progress.on_log()
    progress.on_log()
    assert told == [
        "recovering 0 of 2 logs, 1.2 of 8.0 GB in /data",
        "recovering 2 of 2 logs, 1.2 of 8.0 GB in /data",
    ]


def test_what_is_left_of_a_log_that_was_being_made_is_removed(bench: Bench) -> None:
    """Without an id and without a segment nobody could take up a role of it, and it holds nothing."""
    with_two_logs(bench).close()
    left = bench.directory / "logs" / "cut-0"
    left.mkdir()
    (left / "partition.metadata.tmp").write_bytes(b"")
    directory = open_directory(bench)
    assert set(load(directory)) == {A, B}
    assert not left.exists()
    directory.create_log(TopicPartition("cut", 0), TOPIC_ID, SMALL)


def test_a_new_log_s_names_are_synced_by_its_first_flush(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync_directory = bench.disk.sync_directory
    monkeypatch.setattr(
        bench.disk, "sync_directory", lambda path: (synced.append(path), sync_directory(path))[1]
    )
    directory = open_directory(bench)
    load(directory)
    log = directory.create_log(A, TOPIC_ID, SMALL)
    before = [path for path in synced if path in (log.directory, directory.path)]
    fill(bench, log, 1)
    log.flush()
    assert [path for path in synced if path in (log.directory, directory.path)][len(before) :] == [
        log.directory,
        directory.path,
    ]
    synced.clear()
    fill(bench, log, 1)
    log.flush()
    assert directory.path not in synced
