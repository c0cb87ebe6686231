"""The floor of free space: what crosses it, what is said then, and whom it holds up."""

import logging
import threading

import pytest

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.partition.append_results import HeldUp
from sparklog.broker.partition.free_space import FreeSpaces
from sparklog.core.disk_floor import ASK_MS, FREE_MIN_BYTES
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
from sparklog.storage.disk import Space
from tests.broker.conftest import ManualClock
from tests.broker.partition_harness import TP, Harness, base_offset, batch

OTHER = TopicPartition("quakes", 1)


class Directory:
    """A log directory on a disk of 10 GB."""

    def __init__(self, path="/data") -> None:
        self.path = path
        self.free_bytes = 10**10
        self.asked = 0

    def space(self):
        self.asked += 1
        if self.free_bytes is None:
            raise OSError("the disk is gone")
        return Space(10**10, self.free_bytes)


@pytest.fixture
def directory():
    return Directory()


@pytest.fixture
def settings():
    return CurrentSettings(BrokerConfig())


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def spaces(directory, settings, clock):
    return FreeSpaces(settings, lambda _: directory, threading.Lock(), clock)


@pytest.fixture
def partition(tmp_path, spaces):
    harness = Harness(tmp_path, why_no_room=spaces.why_no_room)
    harness.told(leader=1, epoch=0, isr=(1,), replicas=(1,))
    return harness


def test_below_the_floor_a_client_is_refused_with_the_numbers_and_above_it_no_more(
    partition, directory, clock
) -> None:
    assert partition.produce(batch()).error is ErrorCode.none
    directory.free_bytes = 499_999_999
    clock.now_ms += ASK_MS
    refused = partition.produce(batch())
    assert (refused.error, base_offset(refused)) == (ErrorCode.not_enough_replicas, -1)
    assert refused.message == (
        "the disk of log directory /data has 499999999 bytes free, and log.dirs.free.min.bytes is 500000000: "
        "make room, or send it again later"
    )
    directory.free_bytes = 500_000_000
    assert base_offset(partition.produce(batch())) == 1


def test_a_coordinator_writes_below_the_floor(partition, directory) -> None:
    directory.free_bytes = 1
    assert partition.produce(batch(), origin=AppendOrigin.COORDINATOR).error is ErrorCode.none


def test_a_batch_that_the_log_has_is_acknowledged_below_the_floor(partition, directory, clock) -> None:
    """A refusal says that it is not there."""
    assert base_offset(partition.produce(batch(producer_id=5, sequence=0))) == 0
    directory.free_bytes = 1
    clock.now_ms += ASK_MS
    assert base_offset(partition.produce(batch(producer_id=5, sequence=0))) == 0


def test_behind_a_batch_that_found_no_room_no_later_one_of_its_producer_gets_in(
    partition, directory, clock
) -> None:
    assert partition.produce(batch(producer_id=5, sequence=0)).error is ErrorCode.none
    directory.free_bytes = 1
    clock.now_ms += ASK_MS
    assert partition.produce(batch(producer_id=5, sequence=1)).error is ErrorCode.not_enough_replicas
    directory.free_bytes = 10**9
    assert isinstance(partition.produce(batch(producer_id=5, sequence=2)), HeldUp)
    for sequence in (1, 2):
        assert partition.produce(batch(producer_id=5, sequence=sequence)).error is ErrorCode.none


def test_the_log_says_once_in_each_direction_that_the_floor_is_crossed(spaces, directory, caplog) -> None:
    caplog.set_level(logging.WARNING, "sparklog")
    for free_bytes in (10**9, 1, 2, 10**9, 10**9, 3):
        directory.free_bytes = free_bytes
        spaces.why_no_room(TP, 1)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "ERROR"]
    assert "has 1 bytes free" in caplog.messages[0]
    assert "Make room: by a smaller retention.bytes" in caplog.messages[0]
    assert "accepted again" in caplog.messages[1]


def test_a_change_of_the_setting_counts_at_once(spaces, directory, settings) -> None:
    directory.free_bytes = 1
    assert spaces.why_no_room(TP, 1)
    settings.change(DynamicConfigs({}, {FREE_MIN_BYTES: "0"}))
    assert spaces.why_no_room(TP, 1) == ""


def test_a_disk_that_does_not_say_what_is_free_refuses_nobody(spaces, directory) -> None:
    directory.free_bytes = None
    assert spaces.why_no_room(TP, 1) == ""
    assert spaces.room(directory) is None


def test_a_disk_is_asked_ten_times_a_second_at_most_by_all_partitions_together(
    spaces, directory, clock
) -> None:
    for _ in range(2_000):
        assert spaces.why_no_room(TP, 100) == ""
        assert spaces.why_no_room(OTHER, 100) == ""
        clock.now_ms += 1
    assert directory.asked == 20


def test_a_batch_that_reaches_the_neighbourhood_of_the_floor_asks_at_once(spaces, directory) -> None:
    assert spaces.why_no_room(TP, 1) == ""
    directory.free_bytes = 1
    assert spaces.why_no_room(TP, 9 * 10**9)


def test_what_a_removal_has_freed_is_seen_at_once_by_those_that_are_refused(
    spaces, directory, clock, caplog
) -> None:
    caplog.set_level(logging.WARNING, "sparklog")
    directory.free_bytes = 1
    assert spaces.why_no_room(TP, 1)
    directory.free_bytes = 9 * 10**9
    assert spaces.why_no_room(TP, 1) == ""
    assert "accepted again" in caplog.messages[-1]


def test_a_directory_whose_floor_is_lifted_says_at_once_that_it_accepts_again(
    spaces, directory, settings, caplog
) -> None:
    caplog.set_level(logging.WARNING, "sparklog")
    settings.change(DynamicConfigs({}, {FREE_MIN_BYTES: str(10**15)}))
    assert spaces.why_no_room(TP, 1)
    settings.change(DynamicConfigs({}, {FREE_MIN_BYTES: "0"}))
    assert spaces.why_no_room(TP, 1) == ""
    assert "accepted again" in caplog.messages[-1]


def test_each_directory_is_asked_by_itself(settings, clock) -> None:
    homes = {TP: Directory("/one"), OTHER: Directory("/two")}
    homes[OTHER].free_bytes = 1
    spaces = FreeSpaces(settings, homes.get, threading.Lock(), clock)
    for _ in range(3):
        assert spaces.why_no_room(TP, 1) == ""
        assert "/two has 1 bytes free" in spaces.why_no_room(OTHER, 1)
    assert [directory.asked for directory in homes.values()] == [1, 3]


def test_a_report_asks_the_disk_itself(spaces, directory) -> None:
    assert spaces.why_no_room(TP, 1) == ""
    directory.free_bytes = 8 * 10**9
    assert spaces.room(directory).free_bytes == 8 * 10**9


def test_a_disk_that_does_not_answer_holds_up_no_other(settings, clock) -> None:
    hangs, answers = Directory("/one"), Directory("/two")
    asked, go_on = threading.Event(), threading.Event()

    def hang():
        asked.set()
        go_on.wait(60)
        raise OSError("the disk is gone")

    hangs.space = hang
    spaces = FreeSpaces(settings, {TP: hangs, OTHER: answers}.get, threading.Lock(), clock)
    held = threading.Thread(target=spaces.why_no_room, args=(TP, 1))
    held.start()
    assert asked.wait(60)
    assert spaces.why_no_room(OTHER, 1) == ""
    go_on.set()
    held.join()
