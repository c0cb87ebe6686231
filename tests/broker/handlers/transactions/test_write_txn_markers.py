"""WriteTxnMarkers by itself: what is appended together, what each marker is answered, who is told of it."""

import threading
from types import SimpleNamespace

import pytest

from sparklog.broker.handlers.transactions import write_txn_markers
from sparklog.broker.partition.append_results import decided
from sparklog.broker.ports import Ports
from sparklog.broker.waiting.joint_wait import JointWaits
from sparklog.core.replication.actions import CompleteProduce
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.conftest import ManualTimer
from tests.broker.partition.test_isolation import Transactional
from tests.broker.partition_harness import Harness

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = TopicPartition("__consumer_offsets", 0)


class Leading:
    """A broker that leads a few partitions; it is the call of each request too."""

    def __init__(self, directory, clock):
        self.timer = ManualTimer()
        self.waits = JointWaits(
            Ports(clock=clock, timer=self.timer, executor=None, new_guard=threading.Lock),
            decided,
            timed_out=ErrorCode.request_timed_out,
        )
        self.partitions, self.appends = {}, []
        for topic_partition in (T0, T1, OFFSETS):
            made = Transactional(Harness(directory / str(len(self.partitions))))
            made.harness.told(leader=1, epoch=4)
            self.partitions[topic_partition] = made
        self.context = SimpleNamespace(connection_id=1)
        self.exchange = SimpleNamespace(close=lambda: self.answers.append("closed"))
        self.answers, self.ends = [], []
        self.broker = SimpleNamespace(
            appends=self.waits,
            clock=clock,
            coordinators=SimpleNamespace(on_end=lambda *end: self.ends.append(end)),
            new_guard=threading.Lock,
        )

    def partition(self, topic_partition):
        made = self.partitions.get(topic_partition)
        return ErrorCode.not_leader_or_follower if made is None else made.partition

    def carefully(self, work):
        work()

    def reply(self, response):
        self.answers.append(
            [
                {
                    (topic.name, partition.partition_index): partition.error_code.name
                    for topic in marker.topics
                    for partition in topic.partitions
                }
                for marker in response.markers
            ]
        )

    def has_written(self, producer_id, topic_partition):
        made = self.partitions[topic_partition]
        made.write(producer_id)
        made.replicate()
        made.harness.taken()

    def asked(self, *markers):
        write_txn_markers.handle(self, WriteTxnMarkersRequest(markers=list(markers)))
        for made in self.partitions.values():
            self.delivered(made)

    def replicate(self, *topic_partitions):
        for topic_partition in topic_partitions:
            self.partitions[topic_partition].replicate()
            self.delivered(self.partitions[topic_partition])

    def delivered(self, made):
        for effect in made.harness.taken():
            if isinstance(effect, CompleteProduce):
                self.waits.complete(effect.token, effect.error)


def marker(producer_id, *topic_partitions, commits=True, epoch=0, coordinator_epoch=0):
    topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[n]) for name, n in topic_partitions]
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commits,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
    )


@pytest.fixture
def leading(tmp_path, clock):
    return Leading(tmp_path, clock)


def test_the_request_is_answered_when_each_partition_has_all_of_its_markers(leading):
    leading.asked(marker(7, T0, T1), marker(8, T0))
    leading.replicate(T0)
    assert leading.answers == []
    leading.replicate(T1)
    assert leading.answers == [[{("t", 0): "none", ("t", 1): "none"}, {("t", 0): "none"}]]
    assert leading.timer.waiting == []
    assert len(leading.waits) == 0


def test_each_marker_is_answered_for_itself(leading):
    leading.partitions[T0].mark(8, commits=True, epoch=3)
    gone = TopicPartition("gone", 5)
    leading.asked(marker(7, T0, gone), marker(8, T0, T1, epoch=2), marker(-1, T0), marker(9, T0, epoch=-1))
    leading.replicate(T0, T1)
    assert leading.answers == [
        [
            {("t", 0): "none", ("gone", 5): "not_leader_or_follower"},
            {("t", 0): "invalid_producer_epoch", ("t", 1): "none"},
            {("t", 0): "invalid_request"},
            {("t", 0): "invalid_request"},
        ]
    ]
    assert leading.partitions[T0].partition.log_end_offset == 2


def test_of_two_markers_of_one_producer_the_second_is_judged_when_the_first_is_in_the_log(leading):
    leading.asked(marker(7, T0, epoch=3), marker(8, T0), marker(7, T0, epoch=2), marker(7, T0, T0, epoch=3))
    leading.replicate(T0)
    errors = [result["t", 0] for result in leading.answers[0]]
    assert errors == ["none", "none", "invalid_producer_epoch", "none"]
    assert leading.partitions[T0].partition.log_end_offset == 3


def test_more_markers_than_one_append_takes_go_in_several(leading, monkeypatch):
    monkeypatch.setattr(write_txn_markers, "MARKERS_MAX", 2)
    leading.asked(*[marker(producer_id, T0) for producer_id in range(5)])
    assert len(leading.timer.waiting) == 3
    leading.replicate(T0)
    assert leading.answers == [[{("t", 0): "none"}] * 5]
    assert leading.partitions[T0].partition.log_end_offset == 5


def test_a_coordinator_learns_of_its_markers_though_another_partition_still_waits(leading):
    leading.has_written(7, OFFSETS)
    leading.asked(marker(7, T0, OFFSETS), marker(8, OFFSETS, commits=False))
    leading.replicate(OFFSETS)
    assert leading.ends == [(OFFSETS, 7, True, 1), (OFFSETS, 8, False, 2)]
    assert leading.answers == []


def test_a_coordinator_does_not_learn_of_a_marker_that_was_refused_or_may_be_cut(leading):
    leading.partitions[OFFSETS].mark(8, commits=True, epoch=3)
    leading.asked(marker(7, OFFSETS), marker(8, OFFSETS, epoch=2))
    leading.timer.fire()
    assert leading.ends == []
    assert leading.answers == [
        [
            {("__consumer_offsets", 0): "request_timed_out"},
            {("__consumer_offsets", 0): "invalid_producer_epoch"},
        ]
    ]


def test_a_late_marker_closes_its_connection_and_the_others_are_written(leading):
    leading.context.connection_id = 2
    leading.asked(marker(7, T0))
    leading.context.connection_id = 1
    leading.asked(marker(7, T0), marker(8, T0))
    leading.replicate(T0)
    assert leading.answers == [[{("t", 0): "none"}], "closed"]
    assert leading.partitions[T0].partition.log_end_offset == 2


def test_a_request_that_names_nothing_is_answered_at_once(leading):
    leading.asked()
    leading.asked(marker(7))
    assert leading.answers == [[], [{}]]
