"""The cleaner of a broker: which log it takes, what it remembers, and whom it leaves alone."""

import threading

import pytest

from sparklog.broker.life.cleaner_threads import CleanerThreads
from sparklog.model.ids import TopicPartition
from sparklog.storage.disk import LocalDisk, LocalFile, SyncFailed, WriteFailed
from tests.broker.cleaner_room import Room, clean_all


@pytest.fixture
def room(tmp_path, clock) -> Room:
    return Room(tmp_path, clock)


def test_a_dirty_log_is_cleaned_and_remembered_over_a_restart(room) -> None:
    partition = room.lead("table")
    room.put(partition)
    before = room.state("table")
    assert (before.dirty_ratio, before.is_due, before.last) == (1.0, True, None)
    assert clean_all(room.cleaner) == 1
    after = room.state("table")
    assert (after.first_dirty, after.dirty_bytes, after.is_due) == (before.end, 0, False)
    assert after.last.end == before.end
    assert room.record_count(partition) < 40
    text = (room.folder / "cleaner-offset-checkpoint").read_text()
    assert text == f"0\n1\ntable 0 {before.end}\n"
    room.restart()
    room.lead("table", 2)
    assert room.state("table").first_dirty == before.end
    assert room.cleaner.next() is None


def test_the_log_with_more_dirt_is_taken_first_and_by_one_only(room) -> None:
    little, much = room.lead("little"), room.lead("much")
    room.put(little)
    room.put(much)
    clean_all(room.cleaner)
    room.put(little, 250)
    room.put(much, 500)
    first, second = room.cleaner.next(), room.cleaner.next()
    assert [first.topic_partition.topic, second.topic_partition.topic] == ["much", "little"]
    assert room.cleaner.next() is None
    assert room.state("much").is_being_cleaned
    for _ in first.run():
        """No pause."""
    assert not room.state("much").is_being_cleaned
    assert not room.state("much").is_due
    assert room.state("little").is_due


def test_a_damaged_log_is_set_aside_and_the_others_are_cleaned(room, caplog) -> None:
    bad, good = room.lead("bad"), room.lead("good")
    room.put(bad)
    room.put(good, 90)
    path = room.folder / "bad-0" / ("0" * 20 + ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert clean_all(room.cleaner) == 2
    assert "bad-0 cannot be compacted, and is left as it is" in caplog.text
    assert "CorruptBatch" in room.state("bad").uncleanable
    assert room.state("good").uncleanable is None
    assert room.record_count(good) < 40
    room.put(bad)
    assert room.cleaner.next() is None
    with bad.log_guard.lock:
        bad.log.truncate_to(0)
    room.put(bad)
    assert clean_all(room.cleaner) == 1
    assert room.state("bad").uncleanable is None


def test_after_an_error_of_the_disk_a_log_is_tried_again_a_minute_later(room, monkeypatch) -> None:
    partition = room.lead("table")
    room.put(partition)
    opened = LocalDisk.open

    def full(self, path, *, create=False):
        if create:
            raise OSError(28, "No space left on device", path)
        return opened(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalDisk, "open", full)
        assert clean_all(room.cleaner) == 1
    assert "No space left" in room.state("table").uncleanable
    assert not partition.is_offline
    assert room.cleaner.next() is None
    room.clock.now_ms += 60_000
    assert clean_all(room.cleaner) == 1
    assert room.state("table").uncleanable is None


def test_a_failed_sync_takes_the_partition_offline(room, monkeypatch) -> None:
    partition = room.lead("table")
    room.put(partition)

    def fail(self, path) -> None:
        raise SyncFailed(5, "Input/output error", path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalDisk, "sync_directory", fail)
        clean_all(room.cleaner)
    assert partition.is_offline
    assert room.cleaner.states() == []


@pytest.mark.bug("B25")
def test_a_write_that_the_device_fails_takes_the_partition_offline(room, monkeypatch) -> None:
    partition = room.lead("table")
    room.put(partition)

    def fail(self, data) -> None:
        raise WriteFailed(5, "Input/output error", self.path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFile, "append", fail)
        clean_all(room.cleaner)
    assert partition.is_offline


def test_a_truncation_lowers_the_checkpoint(room) -> None:
    partition = room.lead("table")
    room.put(partition)
    clean_all(room.cleaner)
    with partition.log_guard.lock:
        partition.log.truncate_to(50)
        end = partition.log.log_end_offset
    assert room.log_dirs.cleaned_up_to(partition.topic_partition) == end
    assert f"table 0 {end}" in (room.folder / "cleaner-offset-checkpoint").read_text()


def test_a_checkpoint_above_the_end_that_a_power_cut_left_is_lowered(room) -> None:
    partition = room.lead("table")
    room.put(partition)
    room.parts.chores.close(clean_epoch=1)
    (room.folder / "cleaner-offset-checkpoint").write_text("0\n1\ntable 0 5000\n")
    room.open()
    assert room.log_dirs.cleaned_up_to(TopicPartition("table", 0)) == 100
    assert "table 0 100" in (room.folder / "cleaner-offset-checkpoint").read_text()


def test_two_logs_keep_their_checkpoints_apart(room) -> None:
    one, other = room.lead("one"), room.lead("other")
    room.put(one)
    room.put(other, 60)
    assert clean_all(room.cleaner) == 2
    ends = {state.topic_partition.topic: state.first_dirty for state in room.cleaner.states()}
    assert ends["one"] > ends["other"] > 0
    room.parts.roles.stop_replica(one.topic_partition, 2, delete=True)
    text = (room.folder / "cleaner-offset-checkpoint").read_text()
    assert text == f"0\n1\nother 0 {ends['other']}\n"


def test_a_round_that_was_overtaken_by_a_truncation_leaves_no_checkpoint(room) -> None:
    partition = room.lead("table")
    room.put(partition)
    steps = room.cleaner.next().run()
    next(steps)
    with partition.log_guard.lock:
        partition.log.truncate_to(50)
    assert list(steps) == []
    assert room.log_dirs.cleaned_up_to(partition.topic_partition) is None
    assert room.state("table").uncleanable is None


def test_a_deleted_log_is_forgotten_in_the_middle_of_its_cleaning(room) -> None:
    partition = room.lead("table")
    room.put(partition)
    steps = room.cleaner.next().run()
    next(steps)
    room.parts.roles.stop_replica(partition.topic_partition, 2, delete=True)
    assert list(steps) == []
    assert room.cleaner.states() == []
    assert room.cleaner.next() is None
    again = room.lead("table", epoch=3)
    room.put(again)
    assert clean_all(room.cleaner) == 1


def test_a_replica_without_a_role_is_not_cleaned(room) -> None:
    room.put(room.lead("table"))
    room.restart()
    assert room.cleaner.next() is None


def cleaner_threads() -> set[threading.Thread]:
    """Also those of other brokers that live in this process."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("log-cleaner")}


def test_threads_clean_what_becomes_dirty_and_end_when_told(room) -> None:
    partition = room.lead("table")
    cleaned = threading.Event()
    done = room.cleaner.done

    def tell(*args) -> None:
        done(*args)
        cleaned.set()

    room.cleaner.done = tell
    before = cleaner_threads()
    threads = CleanerThreads(room.cleaner, room.parts.settings)
    threads.start()
    assert cleaner_threads() > before
    room.put(partition)
    assert cleaned.wait(60)
    threads.close()
    assert cleaner_threads() == before
    assert room.record_count(partition) < 100
    assert not [name for name in (room.folder / "table-0").iterdir() if "cleaned" in name.name]


def test_a_stop_in_the_middle_of_a_round_throws_its_work_away(tmp_path, clock) -> None:
    room = Room(tmp_path, clock, {"log.cleaner.io.max.bytes.per.second": "1"})
    partition = room.lead("table")
    room.put(partition)
    resting = threading.Event()
    pause_ms = room.cleaner.pause_ms

    def tell(done_bytes: int) -> int:
        pause = pause_ms(done_bytes)
        if pause:
            resting.set()
        return pause

    room.cleaner.pause_ms = tell
    threads = CleanerThreads(room.cleaner, room.parts.settings)
    threads.start()
    assert resting.wait(20)
    threads.close()
    assert room.record_count(partition) == 100
    assert not room.state("table").is_being_cleaned


def test_without_the_cleaner_there_are_no_threads(tmp_path, clock) -> None:
    room = Room(tmp_path, clock, {"log.cleaner.enable": "false"})
    before = cleaner_threads()
    threads = CleanerThreads(room.cleaner, room.parts.settings)
    threads.start()
    assert cleaner_threads() == before
    threads.close()
