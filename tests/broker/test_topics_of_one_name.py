"""A name can mean one topic after another: what belongs to an earlier one is not taken for it, nor served."""

import shutil
import threading
import uuid
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.handlers import leader_and_isr, update_metadata
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.metadata.metadata_cache import FULL, MetadataCache
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.directory_failures import DiskListeners
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode, LogDirectoryError
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_directory import LogDirectory
from sparklog.wire.messages.control.leader_and_isr import LeaderAndIsrRequest
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.of_this_thread import of_this_thread

TP = TopicPartition("quakes", 0)
EARLIER, LATER, THIRD = (uuid.UUID(int=number) for number in (1, 2, 3))


class Broker:
    """Broker 1 over real directories, which it loads anew with every life."""

    def __init__(self, clock, *folders):
        self.folders, self.clock = folders, clock
        self.start()

    @property
    def folder(self):
        return self.folders[0]

    def start(self, *usable):
        """With all of its directories, or with those that are ``usable``."""
        self.directories = [
            LogDirectory.open(str(folder), 1, "c", LocalDisk(), self.clock, boot_id="b")
            for folder in usable or self.folders
        ]
        self.directory = self.directories[0]
        config = BrokerConfig()
        offline = {str(folder): "is offline" for folder in self.folders if usable and folder not in usable}
        log_dirs = self.log_dirs = LogDirs(self.directories, config, offline, new_guard=threading.Lock)
        log_dirs.load(executor=None)
        ports = Ports(clock=self.clock, timer=None, executor=None, new_guard=threading.Lock)
        nobody = SimpleNamespace(start=lambda *_: None, stop=lambda *_: None, together=nullcontext)
        self.lost = []
        self.parts = ReplicaParts.compose(
            BrokerId(1),
            config,
            log_dirs,
            ports,
            fetchers=nobody,
            proposals=nobody,
            listeners=DiskListeners(on_replicas_lost=self.lost.extend),
        )
        self.replicas = self.parts.table
        self.parts.fence.broker_epoch = BrokerEpoch(10)
        self.parts.logs.load()
        self.metadata = MetadataCache(threading.Lock())

    def restart(self, *usable):
        self.parts.chores.checkpoint_high_watermarks()
        self.parts.chores.close(None)
        self.start(*usable)

    def lead(self, topic_id, epoch=0, *, is_new=False, partition=TP):
        replicas = (BrokerId(1),)
        state = PartitionState(
            leader=BrokerId(1), leader_epoch=LeaderEpoch(epoch), isr=replicas, replicas=replicas
        )
        return self.parts.roles.become(partition, topic_id, state, {}, is_new=is_new)

    def hear(self, *topics, controller_epoch=1, leader=2):
        """The controller names every topic, by id, and no role for this broker: all is at broker 2."""
        states = [
            UpdateMetadataPartitionState(
                partition_index=0,
                controller_epoch=1,
                leader=leader,
                leader_epoch=0,
                zk_version=0,
                replicas=[2],
            )
        ]
        named = [
            UpdateMetadataTopicState(topic_name="quakes", topic_id=one, partition_states=states)
            for one in topics
        ]
        of_controller = {"controller_id": 0, "controller_epoch": controller_epoch, "broker_epoch": 10}
        call = SimpleNamespace(
            broker=SimpleNamespace(
                replicas=self.replicas,
                roles=self.parts.roles,
                fence=self.parts.fence,
                settings=self.parts.settings,
                metadata=self.metadata,
                departed_brokers=DepartedBrokers(self.clock),
                doubted_leaders=DoubtedLeaders(self.clock),
                broker_id=1,
            ),
            reply=lambda answer: None,
        )
        update_metadata.handle(call, UpdateMetadataRequest(**of_controller, type_=FULL, topic_states=named))
        leader_and_isr.handle(call, LeaderAndIsrRequest(**of_controller, type_=leader_and_isr.FULL))

    def produce(self, records):
        partition = self.replicas.get(TP)
        assert (
            partition.leader_append.append(AppendRequest(records, split(records), 1), 0).error
            is ErrorCode.none
        )

    @property
    def names(self):
        return self.names_in(self.folder)

    def names_in(self, folder):
        return sorted(one.name for one in folder.iterdir() if one.name.startswith("quakes"))


@pytest.fixture
def broker(tmp_path, clock):
    return Broker(clock, tmp_path)


STRAY = f"quakes-0.{EARLIER.hex}-stray"


@pytest.fixture(params=["the first", "the second"])
def twice(request, tmp_path, clock, batch):
    """A broker with a log of each topic: the earlier one was deleted while its directory was offline. It is
    the first directory's, or the second's."""
    earlier, later = tmp_path / "one", tmp_path / "two"
    folders = (earlier, later) if request.param == "the first" else (later, earlier)
    broker = Broker(clock, *folders)
    broker.earlier, broker.later = earlier, later
    broker.restart(earlier)
    broker.lead(EARLIER, epoch=5, is_new=True)
    broker.produce(batch(9))
    broker.restart(later)
    broker.lead(LATER, is_new=True)
    broker.produce(batch(4))
    broker.restart()
    return broker


@pytest.mark.bug("B24", "away", "A broker with logs of two topics of one name never starts.")
def test_of_two_topics_logs_of_one_name_both_are_kept_and_one_gets_the_role(twice):
    assert twice.lead(LATER, epoch=1) is ErrorCode.none
    partition = twice.replicas.get(TP)
    assert (partition.topic_id, partition.log.log_end_offset, partition.high_watermark) == (LATER, 4, 4)
    assert twice.log_dirs.home_of(TP).path == str(twice.later)
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == (["quakes-0"], [STRAY])
    twice.restart()
    assert twice.lead(LATER, epoch=2) is ErrorCode.none
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == (["quakes-0"], [STRAY])


@pytest.mark.bug("B24")
def test_until_then_both_stay_as_they_are(twice):
    twice.restart()
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == (["quakes-0"], ["quakes-0"])
    assert twice.lead(LATER, epoch=1) is ErrorCode.none
    assert (twice.replicas.get(TP).log.log_end_offset, twice.replicas.get(TP).high_watermark) == (4, 4)


@pytest.mark.bug("B24")
def test_a_third_topic_of_that_name_takes_neither(twice):
    assert twice.lead(THIRD, is_new=True) is ErrorCode.none
    assert (twice.replicas.get(TP).topic_id, twice.replicas.get(TP).log.log_end_offset) == (THIRD, 0)
    names = twice.names_in(twice.later) + twice.names_in(twice.earlier)
    assert sorted(names) == ["quakes-0", STRAY, f"quakes-0.{LATER.hex}-stray"]


def test_a_disk_that_cannot_set_the_other_log_aside_has_failed_and_the_wanted_one_serves(twice, monkeypatch):
    earlier = next(one for one in twice.directories if one.path == str(twice.earlier))

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(earlier, "set_aside_log", refuse)
    assert twice.lead(LATER, epoch=1) is ErrorCode.none
    assert list(twice.parts.log_dirs.offline) == [str(twice.earlier)]
    assert twice.replicas.get(TP).is_leader
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == (["quakes-0"], ["quakes-0"])


def test_a_disk_that_fails_while_logs_make_way_takes_no_log_of_the_later_topic_with_it(
    tmp_path, clock, monkeypatch
):
    """By the time of the report the later topic's logs have the names of those that went offline."""
    earlier, later, both = tmp_path / "one", tmp_path / "two", (TP, TopicPartition("quakes", 1))
    broker = Broker(clock, earlier, later)
    for folder, topic_id in ((earlier, EARLIER), (later, LATER)):
        broker.restart(folder)
        for name in both:
            assert broker.lead(topic_id, is_new=True, partition=name) is ErrorCode.none
    broker.restart()

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(broker.directory, "set_aside_log", refuse)
    broker.parts.roles.make_way({"quakes": LATER})
    assert list(broker.parts.log_dirs.offline) == [str(earlier)]
    assert {topic_id for topic_id, _ in broker.lost} == {EARLIER}
    assert [broker.lead(LATER, epoch=1, partition=name) for name in both] == [ErrorCode.none] * 2


def test_two_copies_of_one_log_are_refused_and_both_are_named(broker, tmp_path, clock):
    broker.lead(LATER)
    broker.parts.chores.close(None)
    other = tmp_path / "other"
    LogDirectory.open(str(other), 1, "c", LocalDisk(), clock, boot_id="b").close()
    shutil.copytree(broker.folder / "quakes-0", other / "quakes-0")
    with pytest.raises(LogDirectoryError, match=r"quakes-0 is in .* and in .*/other: move one of the two"):
        Broker(clock, broker.folder, other)


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
    assert broker.parts.roles.stop_replica(TP, -2, delete=delete, topic_id=EARLIER) is ErrorCode.none
    assert broker.replicas.get(TP).is_leader
    assert broker.parts.roles.stop_replica(TP, -2, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.names == []


@pytest.mark.bug("B7", "away", "A replica that was moved away comes back.")
def test_a_late_role_does_not_bring_back_a_replica_that_was_moved_away(broker):
    broker.lead(LATER, epoch=9)
    assert broker.parts.roles.stop_replica(TP, 10, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.lead(LATER, epoch=9) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER, epoch=10) is ErrorCode.fenced_leader_epoch
    assert broker.names == []


def test_a_replica_that_is_moved_back_later_is_made_again(broker):
    broker.lead(LATER, epoch=9)
    broker.parts.roles.stop_replica(TP, 10, delete=True, topic_id=LATER)
    assert broker.lead(LATER, epoch=11) is ErrorCode.none
    assert broker.names == ["quakes-0"]


@pytest.mark.bug("B7")
def test_a_role_that_comes_after_the_stop_that_followed_it_makes_no_replica(broker):
    assert broker.parts.roles.stop_replica(TP, 3, delete=True, topic_id=LATER) is ErrorCode.none
    assert broker.lead(LATER, epoch=2) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER, epoch=4) is ErrorCode.none


@pytest.mark.bug("B7")
def test_no_role_brings_back_a_deleted_topic_but_another_of_its_name_is_welcome(broker):
    broker.lead(EARLIER, epoch=5)
    broker.parts.roles.stop_replica(TP, -2, delete=True, topic_id=EARLIER)
    assert broker.lead(EARLIER, epoch=99) is ErrorCode.fenced_leader_epoch
    assert broker.lead(LATER) is ErrorCode.none


def test_a_disk_that_cannot_set_a_log_aside_has_failed_and_is_not_asked_again(broker, monkeypatch):
    broker.lead(EARLIER, epoch=5)
    broker.restart()

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(broker.directory, "set_aside_log", refuse)
    assert broker.lead(LATER) is ErrorCode.kafka_storage_error
    assert list(broker.parts.log_dirs.offline) == [str(broker.folder)]
    assert broker.lead(LATER, epoch=1) is ErrorCode.kafka_storage_error
    assert broker.replicas.get(TP) is None


@pytest.mark.bug("B26", "away", "A replica of a deleted topic stays on disk for ever.")
@pytest.mark.parametrize("first", [EARLIER, LATER])
def test_both_logs_of_one_name_are_deleted_before_any_role_if_both_topics_are(first, twice):
    broker = twice
    for topic_id in (first, EARLIER if first == LATER else LATER):
        assert broker.parts.roles.stop_replica(TP, -2, delete=True, topic_id=topic_id) is ErrorCode.none
    assert [broker.names_in(folder) for folder in broker.folders] == [[], []]
    broker.restart()
    assert broker.replicas.get(TP) is None


def test_a_disk_that_cannot_delete_the_other_log_of_a_name_has_failed(twice, monkeypatch):
    broker = twice
    home = broker.replicas.get(TP).topic_id
    other = EARLIER if home == LATER else LATER

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LogDirectory, "delete_log", of_this_thread(LogDirectory.delete_log, refuse))
    assert (
        broker.parts.roles.stop_replica(TP, -2, delete=True, topic_id=other) is ErrorCode.kafka_storage_error
    )
    assert len(broker.parts.log_dirs.offline) == 1
    assert broker.replicas.get(TP).topic_id == home


@pytest.mark.bug("B8", "away", "A topic whose deletion met a failing disk is never deleted.")
def test_a_disk_that_cannot_delete_a_log_has_failed(broker, monkeypatch):
    broker.lead(LATER, epoch=9)

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(broker.directory, "delete_log", refuse)
    assert (
        broker.parts.roles.stop_replica(TP, -2, delete=True, topic_id=LATER) is ErrorCode.kafka_storage_error
    )
    assert list(broker.parts.log_dirs.offline) == [str(broker.folder)]


@pytest.mark.bug("B52")
def test_a_disk_that_takes_no_new_log_has_failed(broker, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(broker.directory, "create_log", refuse)
    assert broker.lead(LATER, is_new=True) is ErrorCode.kafka_storage_error
    assert list(broker.parts.log_dirs.offline) == [str(broker.folder)]


@pytest.mark.bug("B16", "words", "A role after the last disk failure is logged as a bug, or fails.")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_role_after_the_last_directory_failed_is_refused_without_a_stack_trace(broker, caplog, is_new):
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


# ---- where this broker gets no role ------------------------------------------------------------------------


@pytest.fixture
def returned(broker, batch):
    """A broker with a log of a topic that was deleted while the directory was offline, and no role yet."""
    broker.lead(EARLIER, epoch=5)
    broker.produce(batch(9))
    broker.restart()
    return broker


@pytest.mark.bug("B45", "away", "A log of an earlier topic stays under the name of a later topic.")
def test_a_log_whose_name_another_topic_took_is_set_aside_also_if_that_lives_elsewhere(returned, caplog):
    returned.hear(LATER)
    assert (returned.replicas.get(TP), returned.names) == (None, [STRAY])
    (warning,) = [one.message for one in caplog.records if "earlier topic" in one.message]
    assert str(returned.folder / STRAY) in warning
    assert (returned.folder / STRAY / f"{0:020}.log").stat().st_size > 0
    returned.restart()
    returned.hear(LATER)
    assert (returned.replicas.get(TP), returned.names) == (None, [STRAY])


def test_so_it_is_after_a_kill_in_the_middle_of_that(returned, monkeypatch):
    class Killed(BaseException):
        """Nothing that was begun goes on."""

    def kill(*_):
        raise Killed

    with monkeypatch.context() as killed:
        killed.setattr(Log, "set_aside", kill)
        with pytest.raises(Killed):
            returned.hear(LATER)
    assert returned.names == ["quakes-0"]
    for directory in returned.directories:
        directory.close()
    returned.start()
    returned.hear(LATER)
    assert (returned.replicas.get(TP), returned.names) == (None, [STRAY])


def test_a_log_whose_name_no_topic_has_stays_and_is_named(returned, caplog):
    returned.hear()
    assert (returned.replicas.get(TP).topic_id, returned.names) == (EARLIER, ["quakes-0"])
    (warning,) = [one.message for one in caplog.records if "names no such partition" in one.message]
    assert str(returned.folder / "quakes-0") in warning


def test_a_log_whose_topic_is_being_deleted_waits_for_the_controllers_word(returned):
    returned.hear(EARLIER, leader=-2)
    assert returned.names == ["quakes-0"]
    assert returned.parts.roles.stop_replica(TP, -2, delete=True, topic_id=EARLIER) is ErrorCode.none
    assert returned.names == []


def test_a_log_of_the_topic_that_was_moved_away_is_deleted(returned):
    returned.hear(EARLIER)
    assert (returned.replicas.get(TP), returned.names) == (None, [])


def test_a_controller_that_was_replaced_sets_no_log_aside(returned):
    assert returned.parts.fence.accept_controller(7, 10) is ErrorCode.none
    returned.hear(LATER, controller_epoch=6)
    assert (returned.replicas.get(TP).topic_id, returned.names) == (EARLIER, ["quakes-0"])


def test_a_log_that_has_a_role_is_not_set_aside(returned):
    returned.lead(EARLIER, epoch=6)
    returned.hear(LATER)
    assert returned.replicas.get(TP).is_leader


def test_a_log_that_says_no_topics_id_is_not_set_aside(returned):
    returned.parts.chores.close(None)
    (returned.folder / "quakes-0" / "partition.metadata").unlink()
    returned.start()
    returned.hear(LATER)
    assert returned.names == ["quakes-0"]


@pytest.mark.bug("B45")
def test_of_two_logs_of_one_name_neither_stays_if_a_third_topic_has_it(twice):
    twice.hear(THIRD)
    assert twice.replicas.get(TP) is None
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == (
        [f"quakes-0.{LATER.hex}-stray"],
        [STRAY],
    )


def test_of_two_logs_of_one_name_the_moved_one_is_deleted_the_other_set_aside(twice):
    twice.hear(LATER)
    assert twice.replicas.get(TP) is None
    assert (twice.names_in(twice.later), twice.names_in(twice.earlier)) == ([], [STRAY])


def test_when_one_of_two_logs_of_a_name_is_deleted_the_other_is_set_aside_as_well(twice):
    home = twice.replicas.get(TP).topic_id
    other = EARLIER if home == LATER else LATER
    assert twice.parts.roles.stop_replica(TP, -2, delete=True, topic_id=home) is ErrorCode.none
    twice.hear(THIRD)
    names = twice.names_in(twice.later) + twice.names_in(twice.earlier)
    assert names == [f"quakes-0.{other.hex}-stray"]


def test_a_disk_that_cannot_set_a_log_aside_that_nobody_asks_for_has_failed(returned, monkeypatch):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(returned.directory, "set_aside_log", refuse)
    returned.hear(LATER)
    assert list(returned.parts.log_dirs.offline) == [str(returned.folder)]
    assert (returned.replicas.get(TP), returned.names) == (None, ["quakes-0"])


# ---- a log whose making fails ------------------------------------------------------------------------------


@pytest.fixture
def half_made(tmp_path, clock, monkeypatch):
    """A broker with two directories. The first takes a new log, and not the checkpoint that says so."""
    broker = Broker(clock, tmp_path / "one", tmp_path / "two")

    def refuse(*_):
        raise OSError(122, "Disk quota exceeded")

    with monkeypatch.context() as full:
        full.setattr(broker.directory, "write_high_watermarks", refuse)
        assert broker.lead(LATER, is_new=True) is ErrorCode.kafka_storage_error
    assert list(broker.parts.log_dirs.offline) == [str(tmp_path / "one")]
    assert broker.names == ["quakes-0"]
    return broker


@pytest.mark.bug("B44", "away", "A broker whose disk failed while it created a log never starts again.")
def test_a_role_that_comes_again_after_its_log_was_half_made_makes_no_second_copy(half_made):
    assert half_made.lead(LATER, is_new=True) is ErrorCode.kafka_storage_error
    assert half_made.names_in(half_made.folders[1]) == []
    half_made.restart()
    assert half_made.lead(LATER, epoch=1) is ErrorCode.none
    assert half_made.log_dirs.home_of(TP).path == str(half_made.folder)


@pytest.mark.bug("B44")
def test_the_topic_of_a_log_that_was_half_made_is_deleted_when_its_directory_is_back(half_made):
    delete = {"delete": True, "topic_id": LATER}
    assert half_made.parts.roles.stop_replica(TP, -2, **delete) is ErrorCode.kafka_storage_error
    half_made.restart()
    assert half_made.parts.roles.stop_replica(TP, -2, **delete) is ErrorCode.none
    assert half_made.names == []


def test_another_topic_of_that_name_goes_to_a_directory_that_serves(half_made):
    assert half_made.lead(THIRD, is_new=True) is ErrorCode.none
    assert half_made.log_dirs.home_of(TP).path == str(half_made.folders[1])
