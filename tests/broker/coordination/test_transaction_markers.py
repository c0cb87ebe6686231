"""Markers are sent until every partition has its own, to whoever leads; the last one completes the end."""

from types import SimpleNamespace

import pytest

from sparklog.broker.coordination.transaction_markers import GONE_AFTER_MS, TransactionMarkers
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import MarkersWritten
from sparklog.core.transaction_coordinator.responses import Answer
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import producer_id_of
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.broker.coordination.transaction_shell import A0, A1, ANOTHER_ID, B0, TOPIC_ID, Shell

NONE = ErrorCode.none


class Host:
    """The coordinator's shard; its answers to ``MarkersWritten`` are ``answers``, then NONE."""

    def __init__(self):
        self.topic_partition = TopicPartition("__transaction_state", 3)
        self.leader_epoch = 5
        self.is_over = False
        self.told = []
        self.answers = []

    def submit(self, request, reply):
        self.told.append(request)
        reply(Answer(self.answers.pop(0) if self.answers else NONE))


class Markers(Shell):
    def __init__(self, clock):
        super().__init__(clock)
        self.host = Host()
        self.markers = TransactionMarkers(self.metadata, self.ports, self.calls())

    def ends(self, *topic_partitions, producer_id=7, is_commit=True, topic_id=TOPIC_ID):
        topics = {}
        for name, number in topic_partitions:
            topics.setdefault(name, []).append(number)
        named = tuple(TransactionTopic(name, topic_id, tuple(numbers)) for name, numbers in topics.items())
        self.markers.send(self.host, SendMarkers(f"id-{producer_id}", producer_id, 2, is_commit, named))

    def request(self, broker_id):
        """The markers on their way to a broker, as sets of partitions by producer id."""
        call = self.loops.call(f"transaction-markers-to-{broker_id}")
        if call is None:
            return None
        return {
            marker.producer_id: {
                TopicPartition(topic.name, number)
                for topic in marker.topics
                for number in topic.partition_indexes
            }
            for marker in call.message.markers
        }

    def answers(self, broker_id, error=NONE, **errors):
        """The broker answers its request: ``error`` for all, but for those named as ``a_0=``."""
        call = self.loops.call(f"transaction-markers-to-{broker_id}")
        results = []
        for marker in call.message.markers:
            topics = []
            for topic in marker.topics:
                codes = {n: errors.get(f"{topic.name}_{n}", error) for n in topic.partition_indexes}
                partitions = [
                    WritableTxnMarkerPartitionResult(partition_index=n, error_code=code)
                    for n, code in codes.items()
                ]
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        self.loops.answer(f"transaction-markers-to-{broker_id}", WriteTxnMarkersResponse(markers=results))

    def fails(self, broker_id):
        self.loops.answer(f"transaction-markers-to-{broker_id}", error=ConnectionError("gone"))


@pytest.fixture
def markers(clock):
    made = Markers(clock)
    for topic_partition, leader in ((A0, 1), (A1, 2), (B0, 1)):
        made.leads(topic_partition, leader)
    return made


def test_each_leader_gets_its_partitions_and_the_last_marker_completes_the_end(markers):
    markers.ends(A0, A1, B0)
    assert markers.request(1) == {7: {A0, B0}}
    assert markers.request(2) == {7: {A1}}
    markers.answers(1)
    assert markers.host.told == []
    markers.answers(2)
    assert markers.host.told == [MarkersWritten("id-7", 7, 2, True)]


def test_a_marker_names_the_end_and_its_coordinator_s_epoch(markers):
    markers.ends(A0, is_commit=False)
    (marker,) = markers.loops.call("transaction-markers-to-1").message.markers
    assert (marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch) == (2, False, 5)


def test_what_gathers_while_a_request_is_under_way_goes_together_in_the_next(markers):
    markers.ends(A0, producer_id=7)
    assert markers.request(1) == {7: {A0}}
    markers.ends(A0, producer_id=8)
    markers.ends(B0, producer_id=9)
    markers.answers(1)
    assert markers.request(1) == {8: {A0}, 9: {B0}}


def test_a_refused_marker_is_sent_again_to_whoever_leads_by_then(markers):
    markers.ends(A0, B0)
    markers.request(1)
    markers.leads(A0, 2)
    markers.answers(1, a_0=ErrorCode.not_leader_or_follower)
    markers.timer.fire()
    assert markers.request(1) is None
    assert markers.request(2) == {7: {A0}}
    markers.answers(2)
    assert len(markers.host.told) == 1


def test_what_a_write_lacks_is_named_until_it_is_there(markers):
    """A transaction of a Kafka client may have the write's name, and is none of it."""
    member = producer_id_of(5, 0)
    markers.ends(A0, A1, B0, producer_id=member)
    markers.ends(A1, producer_id=7)
    assert markers.markers.missing(f"id-{member}") == {A0, A1, B0}
    assert markers.markers.missing("id-7") == set()
    markers.answers(1)
    assert markers.markers.missing(f"id-{member}") == {A1}
    markers.answers(2)
    assert markers.markers.missing(f"id-{member}") == set()


def test_a_write_whose_coordinator_has_resigned_lacks_nothing_here(markers):
    member = producer_id_of(5, 0)
    markers.ends(A0, producer_id=member)
    markers.host.is_over = True
    assert markers.markers.missing(f"id-{member}") == set()


def test_a_broker_that_does_not_answer_is_sent_the_markers_again(markers):
    markers.ends(A0)
    markers.request(1)
    markers.fails(1)
    markers.timer.fire()
    assert markers.request(1) == {7: {A0}}


def test_a_partition_without_a_leader_waits_for_one(markers):
    markers.leads(A0, -1)
    markers.ends(A0)
    markers.leads(A0, 2)
    markers.timer.fire()
    assert markers.request(2) == {7: {A0}}


def test_a_topic_that_was_deleted_does_not_block_the_end(markers):
    markers.ends(A0, B0)
    markers.request(1)
    del markers.topics["a"]
    markers.answers(1, a_0=ErrorCode.unknown_topic_or_partition)
    markers.timer.fire()
    assert markers.host.told == [], "metadata may lack a new topic for a moment"
    markers.clock.now_ms += GONE_AFTER_MS
    markers.timer.fire()
    assert len(markers.host.told) == 1


def test_a_topic_that_is_missing_for_a_moment_gets_its_marker(markers):
    a = markers.topics.pop("a")
    markers.ends(A0)
    markers.clock.now_ms += GONE_AFTER_MS - 1
    markers.topics["a"] = a
    markers.timer.fire()
    assert markers.request(1) == {7: {A0}}


def test_a_broker_that_knows_nothing_of_the_cluster_yet_takes_no_topic_for_deleted(markers):
    del markers.topics["a"]
    markers.metadata.is_received = False
    markers.ends(A0)
    markers.clock.now_ms += GONE_AFTER_MS
    markers.timer.fire()
    assert markers.host.told == []


def test_a_topic_that_was_made_again_under_its_name_gets_no_marker(markers):
    markers.leads(A0, 1, topic_id=ANOTHER_ID)
    markers.ends(A0)
    assert len(markers.host.told) == 1
    assert markers.loops.loops == {}


def test_a_partition_that_knows_a_newer_epoch_has_ended_the_transaction(markers):
    markers.ends(A0)
    markers.answers(1, ErrorCode.invalid_producer_epoch)
    assert len(markers.host.told) == 1


def test_an_end_is_left_to_the_newer_coordinator_that_a_partition_knows(markers):
    markers.ends(A0, A1)
    markers.answers(1, ErrorCode.transaction_coordinator_fenced)
    markers.answers(2)
    assert markers.host.told == []


def test_a_coordinator_that_has_resigned_sends_nothing_again(markers):
    markers.ends(A0)
    markers.request(1)
    markers.host.is_over = True
    markers.answers(1, ErrorCode.not_leader_or_follower)
    markers.timer.fire()
    assert markers.request(1) is None
    assert markers.host.told == []


def test_an_end_without_partitions_is_complete_at_once(markers):
    markers.ends()
    assert len(markers.host.told) == 1


def test_the_coordinator_is_told_again_while_its_own_log_refuses(markers):
    markers.host.answers = [ErrorCode.coordinator_not_available, ErrorCode.coordinator_not_available]
    markers.ends()
    markers.timer.fire()
    markers.timer.fire()
    markers.timer.fire()
    assert len(markers.host.told) == 3


def test_a_broker_without_a_known_address_is_tried_again(clock):
    markers = Markers(clock)
    markers.address_of = lambda broker_id: None
    markers.leads(A0, 1)
    markers.ends(A0)
    assert markers.loops.call("transaction-markers-to-1") is None
    markers.address_of = lambda broker_id: SimpleNamespace(id=broker_id)
    markers.timer.fire()
    assert markers.request(1) == {7: {A0}}
