"""A name can mean one topic after another: what belongs to an earlier one is not taken for it, nor served."""

import threading
import uuid
from types import SimpleNamespace

import pytest

from sparklog.broker.log_dirs import LogDirs
from sparklog.broker.metadata_cache import FULL, MetadataCache
from sparklog.broker.ports import Ports
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.model.cluster import PartitionState
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_directory import LogDirectory
from sparklog.wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

TP = TopicPartition("quakes", 0)
EARLIER, LATER = uuid.UUID(int=1), uuid.UUID(int=2)


class Broker:
    """Broker 1 over a real directory, which it loads anew with every life."""

    def __init__(self, folder, clock):
        self.folder, self.clock = folder, clock
        self.start()

    def start(self):
        self.directory = LogDirectory.open(str(self.folder), 1, "c", LocalDisk(), self.clock, boot_id="b")
        config = BrokerConfig()
        log_dirs = self.log_dirs = LogDirs([self.directory], config)
        log_dirs.load(executor=None)
        ports = Ports(clock=self.clock, timer=None, executor=None, new_guard=threading.Lock)
        nobody = SimpleNamespace(start=lambda *_: None, stop=lambda *_: None)
        self.replicas = ReplicaManager(
            BrokerId(1), config, log_dirs, ports, fetchers=nobody, proposals=nobody
        )
        self.replicas.broker_epoch = BrokerEpoch(10)
        self.replicas.load()

    def restart(self):
        self.replicas.close(None)
        self.start()

    def lead(self, topic_id, epoch=0, *, is_new=False):
        replicas = (BrokerId(1),)
        state = PartitionState(
            leader=BrokerId(1), leader_epoch=LeaderEpoch(epoch), isr=replicas, replicas=replicas
        )
        return self.replicas.become(TP, topic_id, state, {}, is_new=is_new)

    @property
    def names(self):
        return sorted(one.name for one in self.folder.iterdir() if one.name.startswith("quakes"))


@pytest.fixture
def broker(tmp_path, clock):
    return Broker(tmp_path, clock)


def test_a_log_of_an_earlier_topic_that_is_found_at_a_start_makes_way_and_is_kept(broker):
    broker.lead(EARLIER, epoch=5)
    broker.restart()
    assert broker.lead(LATER) is ErrorCode.none
    partition = broker.replicas.get(TP)
    assert (partition.topic_id, partition.is_leader, partition.log.log_end_offset) == (LATER, True, 0)
    assert broker.names == ["quakes-0", f"quakes-0.{EARLIER.hex}-stray"]
    broker.restart()
    assert broker.replicas.get(TP).topic_id == LATER
    assert broker.names == ["quakes-0", f"quakes-0.{EARLIER.hex}-stray"]


def test_a_log_that_has_a_role_does_not_make_way_for_another_topic(broker):
    broker.lead(LATER)
    assert broker.lead(EARLIER, epoch=5) is ErrorCode.inconsistent_topic_id
    assert broker.replicas.get(TP).topic_id == LATER


@pytest.mark.parametrize("delete", [False, True])
def test_a_late_stop_of_an_earlier_topic_does_not_touch_the_one_that_has_its_name_now(broker, delete):
    broker.lead(LATER)
    assert broker.replicas.stop_replica(TP, -2, delete=delete, topic_id=EARLIER) is ErrorCode.none
    assert broker.replicas.get(TP).is_leader
    assert broker.replicas.stop_replica(TP, -2, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.names == []


def test_a_late_role_does_not_bring_back_a_replica_that_was_moved_away(broker):
    broker.lead(LATER, epoch=9)
    assert broker.replicas.stop_replica(TP, 10, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.lead(LATER, epoch=9) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER, epoch=10) is ErrorCode.fenced_leader_epoch
    assert broker.names == []


def test_a_replica_that_is_moved_back_later_is_made_again(broker):
    broker.lead(LATER, epoch=9)
    broker.replicas.stop_replica(TP, 10, delete=True, topic_id=LATER)
    assert broker.lead(LATER, epoch=11) is ErrorCode.none
    assert broker.names == ["quakes-0"]


def test_a_role_that_comes_after_the_stop_that_followed_it_makes_no_replica(broker):
    assert broker.replicas.stop_replica(TP, 3, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.lead(LATER, epoch=2) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER, epoch=4) is ErrorCode.none


def test_no_role_brings_back_a_deleted_topic_but_another_of_its_name_is_welcome(broker):
    broker.lead(EARLIER, epoch=5)
    broker.replicas.stop_replica(TP, -2, delete=True, topic_id=EARLIER)
    assert broker.lead(EARLIER, epoch=99) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER) is ErrorCode.none


def test_a_disk_that_cannot_delete_a_log_has_failed(broker, monkeypatch):
    broker.lead(LATER, epoch=9)

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(broker.directory, "delete_log", refuse)
    assert broker.replicas.stop_replica(TP, -2, delete=True, topic_id=LATER) is ErrorCode.kafka_storage_error
    assert list(broker.replicas.offline_directories()) == [str(broker.folder)]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_role_that_comes_when_the_last_directory_has_failed_is_refused_without_a_stack_trace(
    broker, caplog, is_new
):
    broker.log_dirs.fail(broker.directory, "Input/output error", is_suspect=False)
    assert broker.lead(LATER, is_new=is_new) is ErrorCode.kafka_storage_error
    (refusal,) = [one for one in caplog.records if "no log could be made" in one.message]
    assert refusal.exc_info is None
    assert "quakes-0" in refusal.message


def test_a_topic_that_a_full_update_does_not_name_is_gone_from_the_cache():
    cache = MetadataCache(threading.Lock())

    def update(type_, *names):
        state = UpdateMetadataPartitionState(
            partition_index=0, controller_epoch=1, leader=1, leader_epoch=0, zk_version=0
        )
        topics = [
            UpdateMetadataTopicState(topic_name=name, topic_id=EARLIER, partition_states=[state])
            for name in names
        ]
        request = UpdateMetadataRequest(controller_id=0, controller_epoch=1, type_=type_, topic_states=topics)
        assert cache.update(request) is ErrorCode.none
        return sorted(cache.snapshot.topics)

    assert update(FULL, "deleted", "kept") == ["deleted", "kept"]
    assert update(0, "new") == ["deleted", "kept", "new"]
    assert update(FULL, "kept", "new") == ["kept", "new"]
