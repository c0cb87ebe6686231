"""Fetch, ListOffsets and DescribeProducers while transactions are open, ended and aborted."""

import pytest

from sparklog.broker.partition.append_request import AppendRequest
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.fetch import AbortedTransaction, FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from sparklog.wire.messages.transactions.describe_producers import (
    ActiveProducer,
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from tests.broker.server_harness import TOPIC_ID

QUAKES = TopicPartition("quakes", 0)
LATEST = -1


class Transactional:
    """A broker that leads ``quakes-0`` alone; batches and markers are appended as coordinators do."""

    def __init__(self, broker) -> None:
        self.broker = broker
        broker.lead()

    @property
    def partition(self):
        return self.broker.server.body.replicas.get(QUAKES)

    def write(self, producer_id: int, *, timestamp_ms: int = 1_000) -> None:
        records = [Record(value=b"v", timestamp_ms=timestamp_ms)]
        self._append(
            build_records_batch(
                records, now_ms=1_000, producer_id=producer_id, producer_epoch=2, is_transactional=True
            )
        )

    def end(self, producer_id: int, *, commits: bool) -> None:
        end = TransactionEnd(commits, 5)
        self._append(build_marker(end, producer_id=producer_id, producer_epoch=2, now_ms=1_000))

    def _append(self, batch) -> None:
        records = bytearray(batch)
        request = AppendRequest(records, split(records), 1, AppendOrigin.COORDINATOR)
        result = self.partition.leader_append.append(request, 1)
        assert result.error is ErrorCode.none

    def fetch(self, offset=0, *, isolation_level=1, version=None):
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic="quakes", topic_id=TOPIC_ID, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, topics=[topic], isolation_level=isolation_level)
        return self.broker.call(request, version)

    def list_offset(self, timestamp, *, isolation_level=1, version=None):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="quakes", partitions=[asked])], isolation_level=isolation_level
        )
        return self.broker.call(request, version).topics[0].partitions[0]


@pytest.fixture
def quakes(broker) -> Transactional:
    made = Transactional(broker)
    made.write(7)
    made.end(7, commits=False)
    made.write(8)
    made.write(9, timestamp_ms=9_000)
    made.end(9, commits=True)
    return made


@pytest.mark.parametrize("version", range(4, 16))
def test_a_read_committed_fetch_ends_at_the_last_stable_offset_in_every_version(quakes, version):
    answer = quakes.fetch(version=version).responses[0].partitions[0]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (ErrorCode.none, 5, 2)
    assert answer.aborted_transactions == [AbortedTransaction(producer_id=7, first_offset=0)]
    answer = quakes.fetch(2, version=version).responses[0].partitions[0]
    assert (answer.aborted_transactions, answer.records) == ([], ())
    answer = quakes.fetch(isolation_level=0, version=version).responses[0].partitions[0]
    assert (answer.high_watermark, answer.last_stable_offset) == (5, 2)
    assert answer.aborted_transactions is None


@pytest.mark.parametrize("version", [4, 6, 7, 15])
def test_an_isolation_level_that_there_is_not_is_refused_by_fetch(quakes, version):
    answer = quakes.fetch(isolation_level=2, version=version)
    if version >= 7:
        assert answer.error_code is ErrorCode.invalid_request
    else:
        assert answer.responses[0].partitions[0].error_code is ErrorCode.invalid_request


@pytest.mark.parametrize("version", [2, 8])
def test_latest_obeys_the_isolation_level(quakes, version):
    assert quakes.list_offset(LATEST, version=version).offset == 2
    assert quakes.list_offset(LATEST, isolation_level=0, version=version).offset == 5
    refused = quakes.list_offset(LATEST, isolation_level=7, version=version)
    assert (refused.error_code, refused.offset) == (ErrorCode.invalid_request, -1)
    quakes.end(8, commits=True)
    assert quakes.list_offset(LATEST, version=version).offset == 6


def test_nothing_beyond_the_last_stable_offset_is_found_by_its_time(quakes):
    assert quakes.list_offset(9_000).offset == -1
    assert quakes.list_offset(9_000, isolation_level=0).offset == 3
    assert quakes.list_offset(500).offset == 0


def test_producers_are_described_with_their_open_transactions(quakes):
    topics = [DescribeProducersTopic(name=name, partition_indexes=[0, 4]) for name in ("quakes", "none")]
    known, unknown = quakes.broker.call(DescribeProducersRequest(topics=topics)).topics
    found, other = known.partitions
    assert [(one.producer_id, one.coordinator_epoch, one.current_txn_start_offset) for one in
            found.active_producers] == [(7, 5, -1), (8, -1, 2), (9, 5, -1)]  # fmt: skip
    assert isinstance(found.active_producers[0], ActiveProducer)
    assert {one.producer_epoch for one in found.active_producers} == {2}
    errors = [one.error_code for one in (found, other, *unknown.partitions)]
    assert errors == [ErrorCode.none, *[ErrorCode.not_leader_or_follower] * 3], "metadata is not known yet"
