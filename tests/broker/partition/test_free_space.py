"""The floor of free space: what crosses it, what is said then, and whom it holds up."""

import logging
import threading

import pytest

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.partition.append_results import HeldUp
from sparklog.broker.partition.free_space import FreeSpaces
from sparklog.core.disk_floor import FREE_MIN_BYTES
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
from sparklog.storage.disk import Space
from tests.broker.partition_harness import TP, Harness, base_offset, batch


class Directory:
    """A log directory on a disk of 10 GB."""

    path = "/data"

    def __init__(self) -> None:
        self.free_bytes = 10**10

    def space(self):
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
def spaces(directory, settings):
    return FreeSpaces(settings, lambda _: directory, threading.Lock())


@pytest.fixture
def partition(tmp_path, spaces):
    harness = Harness(tmp_path, why_no_room=spaces.why_no_room)
    harness.told(leader=1, epoch=0, isr=(1,), replicas=(1,))
    return harness


def test_below_the_floor_a_client_is_refused_with_the_numbers_and_above_it_no_more(
    partition, directory
) -> None:
    assert partition.produce(batch()).error is ErrorCode.none
    directory.free_bytes = 499_999_999
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


def test_a_batch_that_the_log_has_is_acknowledged_below_the_floor(partition, directory) -> None:
    """A refusal says that it is not there."""
    assert base_offset(partition.produce(batch(producer_id=5, sequence=0))) == 0
    directory.free_bytes = 1
    assert base_offset(partition.produce(batch(producer_id=5, sequence=0))) == 0


def test_behind_a_batch_that_found_no_room_no_later_one_of_its_producer_gets_in(partition, directory) -> None:
    assert partition.produce(batch(producer_id=5, sequence=0)).error is ErrorCode.none
    directory.free_bytes = 1
    assert partition.produce(batch(producer_id=5, sequence=1)).error is ErrorCode.not_enough_replicas
    directory.free_bytes = 10**9
    assert isinstance(partition.produce(batch(producer_id=5, sequence=2)), HeldUp)
    for sequence in (1, 2):
        assert partition.produce(batch(producer_id=5, sequence=sequence)).error is ErrorCode.none


def test_the_log_says_once_in_each_direction_that_the_floor_is_crossed(spaces, directory, caplog) -> None:
    caplog.set_level(logging.WARNING, "sparklog")
    for free_bytes in (10**9, 1, 2, 10**9, 10**9, 3):
        directory.free_bytes = free_bytes
        spaces.why_no_room(TP)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "ERROR"]
    assert "has 1 bytes free" in caplog.messages[0]
    assert "Make room: by a smaller retention.bytes" in caplog.messages[0]
    assert "accepted again" in caplog.messages[1]


def test_a_change_of_the_setting_counts_at_once(spaces, directory, settings) -> None:
    directory.free_bytes = 1
    assert spaces.why_no_room(TP)
    settings.change(DynamicConfigs({}, {FREE_MIN_BYTES: "0"}))
    assert spaces.why_no_room(TP) == ""


def test_a_disk_that_does_not_say_what_is_free_refuses_nobody(spaces, directory) -> None:
    directory.free_bytes = None
    assert spaces.why_no_room(TP) == ""
    assert spaces.room(directory) is None
