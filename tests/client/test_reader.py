"""A range is read exactly, or the reader says why it cannot be."""

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.errors import OffsetOutOfRange, RangeNotReadable, TopicRecreated
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.model.errors import CorruptBatch, ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.records.envelope import CONTROL_BIT, TRANSACTIONAL_BIT, build_envelope, parse_header
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.records.row_columns import ROW_SCHEMA
from sparklog.wire.messages.data.fetch import AbortedTransaction, FetchRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
BatchOf = Callable[..., bytes]
TP = TopicPartition("t", 0)


@pytest.fixture
def fake(start_fake: Start) -> Any:
    cluster = start_fake(2)
    cluster.create_topic("t")
    return cluster


def read(client: ClusterClient, start: int, end: int, **options: Any) -> list[tuple[int, str]]:
    rows: list[tuple[int, str]] = []
    for batch in read_range(client, TP, start, end, **options):
        assert batch.schema == ROW_SCHEMA
        values = [value.decode() for value in batch.column("value").to_pylist()]
        rows.extend(zip(batch.column("offset").to_pylist(), values, strict=True))
    return rows


def fill(fake: Any, batch_of: BatchOf, count: int, size: int = 3, **options: Any) -> list[tuple[int, str]]:
    for number in range(count):
        values = [str(number * size + i) for i in range(size)]
        fake.log("t").append(batch_of(*values, **options))
    return [(offset, str(offset)) for offset in range(count * size)]


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_batches_that_overlap_the_range_are_cut(
    kind: PayloadKind, fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 5, kind=kind)
    assert read(client_of(fake), 0, 15) == rows
    assert read(client_of(fake), 4, 11) == rows[4:11]
    assert read(client_of(fake), 7, 8) == rows[7:8]
    assert read(client_of(fake), 5, 5) == []


def test_a_range_takes_as_many_fetches_as_it_needs(fake: Any, client_of: Connect, batch_of: BatchOf) -> None:
    rows = fill(fake, batch_of, 20)
    assert read(client_of(fake), 1, 59, max_bytes=1) == rows[1:59]
    assert fake.count(FetchRequest) == 20


def test_the_reader_waits_for_records_that_are_still_to_be_committed(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 2)
    fake.log("t").high_watermark = 3
    reader = read_range(client_of(fake), TP, 0, 6)
    assert next(reader).num_rows == 3
    fake.log("t").high_watermark = 6
    assert next(reader).column("offset").to_pylist() == [offset for offset, _ in rows[3:]]
    assert list(reader) == []


def test_the_reader_follows_the_leader_and_survives_lost_connections(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 10)
    reader = read_range(client_of(fake), TP, 0, 30, max_bytes=1)
    offsets: list[int] = []
    for number, batch in enumerate(reader):
        offsets.extend(batch.column("offset").to_pylist())
        if number == 2:
            fake.lead("t", 0, 2)
        elif number == 4:
            fake.cut_after["Fetch"] = 2
        elif number == 6:
            fake.lead("t", 0, 1)
            fake.stop_broker(2)
    assert offsets == [offset for offset, _ in rows]


def test_offsets_without_records_are_passed_over_and_told(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    log = fake.log("t")
    log.append(batch_of("a"))
    log.append(batch_of("b"), base_offset=5)
    log.append(batch_of("c"), base_offset=9)
    gaps: list[tuple[int, int]] = []
    rows = read(client_of(fake), 0, 8, on_gap=lambda first, found: gaps.append((first, found)))
    assert rows == [(0, "a"), (5, "b")]
    assert gaps == [(1, 5), (6, 8)]


def test_records_that_were_deleted_are_an_error_with_what_is_left(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    fill(fake, batch_of, 5)
    fake.log("t").log_start_offset = 6
    with pytest.raises(OffsetOutOfRange, match="offset 2 of t-0 was deleted") as gone:
        read(client_of(fake), 2, 9)
    assert (gone.value.log_start_offset, gone.value.log_end_offset) == (6, 15)


def test_a_range_that_begins_beyond_the_log_is_an_error(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    fill(fake, batch_of, 1)
    with pytest.raises(OffsetOutOfRange, match="offset 8 of t-0 is beyond the end") as beyond:
        read(client_of(fake), 8, 9)
    assert beyond.value.log_end_offset == 3


def test_a_range_that_ends_beyond_the_log_is_an_error_after_a_while(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    fill(fake, batch_of, 1)
    with pytest.raises(RangeNotReadable, match=r"from offset 3 on .* up to 9.* not including, 3"):
        read(client_of(fake), 0, 9, timeout_ms=100)


def test_a_topic_that_was_created_again_is_not_taken_for_the_old_one(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    fill(fake, batch_of, 3)
    client = client_of(fake)
    with pytest.raises(TopicRecreated):
        read(client, 0, 9, topic_id=uuid.uuid4())
    reader = read_range(client, TP, 0, 9, max_bytes=1)
    next(reader)
    fake.create_topic("t")
    fill(fake, batch_of, 3)
    with pytest.raises(TopicRecreated, match="'t' was deleted and created again"):
        list(reader)


def test_a_damaged_batch_is_not_handed_out(fake: Any, client_of: Connect, batch_of: BatchOf) -> None:
    fill(fake, batch_of, 1)
    damaged = bytearray(fake.log("t").batches[0])
    damaged[-1] ^= 1
    fake.log("t").batches[0] = bytes(damaged)
    with pytest.raises(CorruptBatch, match="t-0: the batch at offset 0 has a wrong CRC"):
        read(client_of(fake), 0, 3)


def test_an_unreadable_partition_is_an_error_at_once(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    fill(fake, batch_of, 1)
    fake.refusals[TP].append(ErrorCode.topic_authorization_failed)
    with pytest.raises(KafkaError, match=r"(?i)topic_authorization_failed"):
        read(client_of(fake), 0, 3)


def test_leaving_early_leaves_nothing_behind(fake: Any, client_of: Connect, batch_of: BatchOf) -> None:
    fill(fake, batch_of, 5)
    client = client_of(fake)
    reader = read_range(client, TP, 0, 15, max_bytes=1)
    next(reader)
    reader.close()
    assert read(client, 0, 3) == [(0, "0"), (1, "1"), (2, "2")]


def fetched_from(fake: Any) -> list[int]:
    """The broker that each fetch went to."""
    return [broker_id for broker_id, request in fake.requests if isinstance(request, FetchRequest)]


def test_a_closest_replica_that_is_not_in_metadata_is_left_for_the_leader(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 2)
    fake.hidden_brokers.add(2)
    fake.closest = 2
    client = client_of(fake, client_rack="near")
    client.topic("t")
    asked = fake.count(MetadataRequest)
    assert read(client, 0, 6, timeout_ms=2_000) == rows
    assert fetched_from(fake) == [1, 1]
    assert fake.count(MetadataRequest) == asked + 1


def test_a_closest_replica_that_newer_metadata_has_is_read_from(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 2)
    fake.hidden_brokers.add(2)
    client = client_of(fake, client_rack="near")
    client.topic("t")
    fake.hidden_brokers.clear()
    fake.closest = 2
    assert read(client, 0, 6, timeout_ms=2_000) == rows
    assert fetched_from(fake) == [1, 2]


def test_a_leader_that_names_itself_as_the_closest_replica_is_read_from(
    fake: Any, client_of: Connect, batch_of: BatchOf
) -> None:
    rows = fill(fake, batch_of, 2)
    fake.closest = 1
    assert read(client_of(fake, client_rack="near"), 0, 6, timeout_ms=2_000) == rows
    assert fetched_from(fake) == [1, 1, 1]


def transactional(value: str, producer_id: int) -> bytes:
    columns = pa.record_batch({"value": pa.array([value.encode()], pa.binary())})
    return payload(PayloadKind.RECORDS).from_columns(
        columns, now_ms=1, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def marker(producer_id: int, *, is_commit: bool) -> bytes:
    key = pa.record_batch(
        {
            "key": pa.array([bytes([0, 0, 0, is_commit])], pa.binary()),
            "value": pa.array([bytes(6)], pa.binary()),
        }
    )
    plain = payload(PayloadKind.RECORDS).from_columns(key, now_ms=1)
    header = parse_header(plain)
    return build_envelope(
        plain[61:],
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
        record_count=1,
        last_offset_delta=0,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=0,
    )


def fill_with_transactions(fake: Any) -> None:
    log = fake.log("t")
    log.append(transactional("aborted", 7))
    log.append(transactional("committed", 8))
    log.append(transactional("aborted too", 7))
    log.append(marker(8, is_commit=True))
    log.append(marker(7, is_commit=False))
    log.append(transactional("committed later", 7))
    log.append(marker(7, is_commit=True))
    log.aborted = [AbortedTransaction(producer_id=7, first_offset=0)]


def test_read_committed_leaves_out_what_was_aborted(fake: Any, client_of: Connect) -> None:
    fill_with_transactions(fake)
    assert read(client_of(fake), 0, 7) == [(1, "committed"), (5, "committed later")]


def test_read_uncommitted_leaves_out_markers_only(fake: Any, client_of: Connect) -> None:
    fill_with_transactions(fake)
    fake.log("t").aborted = []
    rows = read(client_of(fake), 0, 7, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    assert [offset for offset, _ in rows] == [0, 1, 2, 5]


def test_a_range_of_markers_alone_has_no_rows_and_ends(fake: Any, client_of: Connect) -> None:
    fill_with_transactions(fake)
    assert read(client_of(fake), 3, 5) == []


# The consumer of given partitions.


def poll_values(consumer: Consumer, count: int) -> list[tuple[int, str]]:
    values: list[tuple[int, str]] = []
    while len(values) < count:
        for tp, rows in consumer.poll(10_000):
            values.extend((tp.partition, value.decode()) for value in rows.column("value").to_pylist())
    return values


def test_the_consumer_reads_partitions_of_several_leaders_and_keeps_their_positions(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake(2)
    fake.create_topic("t", 4)
    for partition in range(4):
        fake.log("t", partition).append(batch_of(f"{partition}a", f"{partition}b"))
    tps = [TopicPartition("t", partition) for partition in range(4)]
    with Consumer(client_of(fake), dict.fromkeys(tps, 0)) as consumer:
        assert sorted(poll_values(consumer, 8)) == [(n, f"{n}{half}") for n in range(4) for half in "ab"]
        assert consumer.positions == dict.fromkeys(tps, 2)
        assert consumer.poll(0) == []
        fake.log("t", 3).append(batch_of("later"))
        assert poll_values(consumer, 1) == [(3, "later")]


def test_the_consumer_follows_leaders_and_survives_their_death(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake(2)
    fake.create_topic("t")
    fake.log("t").append(batch_of("first"))
    with Consumer(client_of(fake), {TP: 0}) as consumer:
        assert poll_values(consumer, 1) == [(0, "first")]
        dead = fake.log("t").leader
        fake.lead("t", 0, 3 - dead)
        fake.stop_broker(dead)
        fake.log("t").append(batch_of("second"))
        assert poll_values(consumer, 1) == [(0, "second")]


def test_the_consumer_gives_up_on_a_partition_that_nobody_serves(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.refusals[TP].extend([ErrorCode.leader_not_available] * 1_000)
    with (
        Consumer(client_of(fake), {TP: 0}, timeout_ms=200) as consumer,
        pytest.raises(KafkaError, match="t-0 for 200 ms"),
    ):
        consumer.poll(10_000)


@pytest.mark.scenario("S10")
def test_the_consumer_asks_where_to_go_on_when_its_offset_is_gone(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.log("t").log_start_offset = 5
    fake.log("t").append(batch_of("kept"))
    with Consumer(client_of(fake), {TP: 1}) as strict, pytest.raises(OffsetOutOfRange):
        strict.poll(10_000)
    with Consumer(client_of(fake), {TP: 1}, on_out_of_range=lambda gone: gone.log_start_offset) as lenient:
        assert poll_values(lenient, 1) == [(0, "kept")]


def test_the_consumer_drops_answers_of_partitions_that_it_reads_no_more(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t", 2)
    for partition in (0, 1):
        fake.log("t", partition).append(batch_of(f"of {partition}"))
    with Consumer(client_of(fake), {TP: 0}) as consumer:
        assert poll_values(consumer, 1) == [(0, "of 0")]
        assert consumer.poll(0) == []  # a fetch of partition 0 is under way
        fake.log("t").append(batch_of("after the end"))
        consumer.unassign([TP])
        consumer.assign({TopicPartition("t", 1): 0})
        assert poll_values(consumer, 1) == [(1, "of 1")]
        assert consumer.positions == {TopicPartition("t", 1): 1}


def test_the_consumer_goes_on_where_it_was_sent_and_not_where_a_fetch_under_way_ends(
    start_fake: Start, client_of: Connect, batch_of: BatchOf
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    for value in ("0", "1", "2"):
        fake.log("t").append(batch_of(value))
    with Consumer(client_of(fake), {TP: 3}) as consumer:
        assert consumer.poll(0) == []
        fake.log("t").append(batch_of("3"))
        consumer.assign({TP: 1})
        assert poll_values(consumer, 3) == [(0, "1"), (0, "2"), (0, "3")]
