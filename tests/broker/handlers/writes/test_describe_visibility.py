"""DescribeVisibility, and fetches up to the high watermark that are told of aborted transactions."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.write_ids import producer_id_of
from sparklog.storage.segments import segment_search
from sparklog.wire.messages.data.fetch import AbortedTransaction, FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.writes.describe_visibility import (
    AskedPartition,
    AskedTopic,
    DescribeVisibilityRequest,
)
from tests.broker.handlers.test_read_committed import Transactional
from tests.broker.server_harness import TOPIC_ID

OPEN, COMMITTED, ABORTED = (producer_id_of(number, 0) for number in (50, 51, 52))


@pytest.fixture
def log(broker):
    """0: open; 1, 2: a write that was committed; 3, 4: one that was aborted; 5: a client's, open."""
    made = Transactional(broker)
    made.write(OPEN)
    for producer_id, commits in ((COMMITTED, True), (ABORTED, False)):
        made.write(producer_id)
        made.end(producer_id, commits=commits)
    made.write(7)
    return made


def described(log, since, *, epoch=-1, topic="quakes", partition=0):
    asked = AskedPartition(partition_index=partition, current_leader_epoch=epoch, since_offset=since)
    request = DescribeVisibilityRequest(topics=[AskedTopic(name=topic, partitions=[asked])])
    return log.broker.call(request).topics[0].partitions[0]


@pytest.mark.parametrize(
    ("since", "writes"),
    [(0, [50, 51, 52]), (2, [50, 51, 52]), (3, [50, 52]), (4, [50, 52]), (5, [50]), (6, [50])],
)
def test_writes_that_are_open_or_were_ended_since_an_offset_are_named(log, since, writes):
    found = described(log, since)
    assert (found.error_code, found.writes) == (ErrorCode.none, writes)
    assert (found.high_watermark, found.stable_offset) == (6, 5), "only the client's transaction counts"


def test_a_transaction_of_a_client_that_ended_holds_back_nothing(log):
    log.end(7, commits=True)
    assert (described(log, 6).high_watermark, described(log, 6).stable_offset) == (7, 7)


@pytest.mark.parametrize("since", [-1, 7, 2**63 - 1])
def test_an_offset_that_the_log_does_not_have_is_refused(log, since):
    found = described(log, since)
    assert (found.error_code, found.writes) == (ErrorCode.offset_out_of_range, [])


def test_a_search_that_would_take_long_is_refused(log, monkeypatch):
    monkeypatch.setattr(segment_search, "MARKER_SEARCH_BATCHES_MAX", 2)
    assert described(log, 3).error_code is ErrorCode.offset_out_of_range
    assert described(log, 4).error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ({"epoch": 9}, ErrorCode.unknown_leader_epoch),
        ({"partition": 4}, ErrorCode.not_leader_or_follower),
        ({"topic": "none"}, ErrorCode.not_leader_or_follower),
    ],
)
def test_whoever_does_not_lead_says_so(log, where, error):
    assert described(log, 0, **where).error_code is error


def fetched(log, **fields):
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="quakes", topic_id=TOPIC_ID, partitions=[asked])]
    return log.broker.call(FetchRequest(max_wait_ms=0, topics=topics, **fields)).responses[0].partitions[0]


def test_a_fetch_up_to_the_high_watermark_is_told_of_aborted_transactions_if_it_asks(log):
    told = fetched(log, with_aborted=1)
    assert told.aborted_transactions == [AbortedTransaction(producer_id=ABORTED, first_offset=3)]
    assert fetched(log).aborted_transactions is None
    assert len(told.records) == len(fetched(log).records) > 0
