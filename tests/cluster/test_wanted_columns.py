"""Readers of real brokers that name columns: at leaders, in their rack, out of the store, and with damage."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.client.topic_schemas import describe_schemas
from sparklog.core.replication.read_replica import RACK_AWARE_SELECTOR
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.network.dialing.connection import Connection
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import ENVELOPE_BYTES, parse_header
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from sparklog.records.typed_decoding import TypedReading
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.appended_transactions import AppendedTransactions
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = pytest.mark.integration

RACKS = {1: "a", 2: "b", 3: "c"}
DDL = "id bigint, text string, mag double, s struct<a: int>"
ID, MAG, NESTED = 1, 3, 5
COUNT = 400


def rows_from(first: int, count: int = COUNT) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "text": [f"{n:0100d}" for n in ids], "mag": [n / 2 for n in ids]}
    )


@pytest.fixture
def racks(tmp_path: Path) -> Iterator[InProcessCluster]:
    settings = {"replica.selector.class": RACK_AWARE_SELECTOR, "replica.fetch.wait.max.ms": "100"}
    with InProcessCluster(tmp_path, racks=RACKS, settings=settings) as cluster:
        yield cluster


def reading(cluster: InProcessCluster, topic: str, *names: str) -> TypedReading:
    columns = TopicColumns(describe_schemas(cluster.client, [topic])[topic])
    wanted = tuple(field for field in columns.newest.columns if field.name in names)
    return TypedReading(columns, wanted, with_times=False)


def read(
    client: ClusterClient, topic: str, how: TypedReading, end: int, max_bytes: int = 1 << 20
) -> list[dict[str, Any]]:
    found = read_range(
        client,
        TopicPartition(topic, 0),
        0,
        end,
        typed=how,
        max_bytes=max_bytes,
        timeout_ms=20_000,
        isolation_level=IsolationLevel.READ_COMMITTED,
    )
    return [row for batch in found for row in batch.to_pylist()]


def sent_bytes(cluster: InProcessCluster, topic: str) -> dict[int, int]:
    replicas = {
        number: broker.body.replicas.get(TopicPartition(topic, 0))
        for number, broker in cluster.brokers.items()
    }
    return {number: replica.counts.now.fetched_bytes for number, replica in replicas.items() if replica}


@pytest.mark.parametrize("is_near", [False, True], ids=["at the leader", "at a follower"])
def test_a_column_takes_its_own_bytes_wherever_it_is_read(racks: InProcessCluster, is_near: bool) -> None:
    racks.create_topic("t", schema=DDL)
    racks.wait_for_isr("t", 3)
    leader = racks.wait_for_leader("t")
    for first in range(0, 5 * COUNT, COUNT):
        racks.produce("t", rows_from(first))
    size_bytes = max(replica.log.size_bytes for replica in partitions(racks, "t"))
    from_broker = next(number for number in RACKS if (number != leader) == is_near)
    rack = RACKS[from_broker]
    with ClusterClient(racks.bootstrap_servers, client_rack=rack) as client:
        found = read(client, "t", reading(racks, "t", "mag"), 5 * COUNT, max_bytes=5_000)
    assert found == [{"mag": n / 2, "_offset": n} for n in range(5 * COUNT)]
    sent = sent_bytes(racks, "t")
    assert sum(sent.values()) == sent[from_broker]
    assert 5 * COUNT * 8 < sent[from_broker] < size_bytes / 5
    statistics = racks.brokers[BrokerId(from_broker)].body.context.conversions
    assert statistics.cut_batches >= 5
    assert statistics.cut_bytes > size_bytes / 2


def partitions(cluster: InProcessCluster, topic: str) -> list[Any]:
    found = [broker.body.replicas.get(TopicPartition(topic, 0)) for broker in cluster.brokers.values()]
    return [replica for replica in found if replica is not None]


def test_rows_of_aborted_transactions_are_left_out_of_what_is_read_on(racks: InProcessCluster) -> None:
    transactions = AppendedTransactions(racks, "t", DDL)
    how = reading(racks, "t", "id")
    expected = []
    for number in range(12):
        columns = {ID: pa.array([number] * 50), 2: pa.array(["x" * 200] * 50)}
        batch = typed_batch(columns, 50, how.topic.newest, now_ms=1_000)
        transactions.write_batch(number % 2 + 1, bytearray(batch))
        if number % 4 == 3:
            transactions.end(1, commits=True)
            transactions.end(2, commits=False)
            expected += [number - 3] * 50 + [number - 1] * 50
    end = 12 * 50 + 6
    for max_bytes in (2_000, 1 << 20):
        assert [row["id"] for row in read(racks.client, "t", how, end, max_bytes)] == expected


def test_columns_come_out_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    settings = copying_at_once(f"file://{tmp_path / 'store'}")
    tiered = in_the_store_only(20_000)
    with InProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        cluster.create_topic("t", schema=DDL, configs=tiered)
        for first in range(0, 1_000, 100):
            cluster.produce("t", rows_from(first, 100))
        until(lambda: all(one.log.local_start_offset >= 700 for one in partitions(cluster, "t")))
        found = read(cluster.client, "t", reading(cluster, "t", "mag"), 1_000)
        assert found == [{"mag": n / 2, "_offset": n} for n in range(1_000)]
        assert 8_000 < sum(sent_bytes(cluster, "t").values()) < 40_000, "all columns are 125,000 bytes"


def test_a_damaged_column_fails_its_readers_alone_who_name_it(tmp_path: Path) -> None:
    with InProcessCluster(tmp_path, brokers=1) as cluster:
        cluster.create_topic("t", schema=DDL)
        cluster.produce("t", rows_from(0))
        path = tmp_path / "broker-1" / "0" / "t-0" / f"{0:020d}.log"
        batch = path.read_bytes()
        ours = parse_arrow_header(batch[ENVELOPE_BYTES : parse_header(batch).size_bytes])
        entry = next(one for one in ours.columns if one.column_id == MAG)
        with open(path, "r+b") as file:
            file.seek(ENVELOPE_BYTES + ours.header_length + ours.metadata_length + entry.offset + 9)
            file.write(b"\xff\xff")
        assert len(read(cluster.client, "t", reading(cluster, "t", "id"), COUNT)) == COUNT
        words = r"t-0: the batch at offset 0, column mag: the CRC 0x\w+ of column 3 does not match"
        with pytest.raises(CorruptBatch, match=words):
            read(cluster.client, "t", reading(cluster, "t", "mag"), COUNT)
        with open(path, "r+b") as file:  # the batch's max timestamp
            file.seek(40)
            file.write(b"\xff")
        node = cluster.brokers[BrokerId(1)].node
        with Connection.open(node.host, node.port, client_id="columns", timeout_ms=5_000) as connection:
            assert code_of(connection, (ID,), {"topic": "t"}) is ErrorCode.corrupt_message


def test_batches_without_a_wanted_row_are_passed_over(racks: InProcessCluster) -> None:
    racks.create_topic("t", schema=DDL)
    for first in range(0, 10 * COUNT, COUNT):
        racks.produce("t", rows_from(first))
    plain = reading(racks, "t", "mag")
    condition = parse_condition(f"id between {3 * COUNT} and {3 * COUNT + 9}", plain.topic.newest.columns)
    how = replace(plain, where=condition, where_version=1)
    before = passed_over(racks)
    found = read(racks.client, "t", how, 10 * COUNT)
    assert found == [{"mag": n / 2, "_offset": n} for n in range(3 * COUNT, 3 * COUNT + 10)]
    assert passed_over(racks) == before + 9
    nothing = replace(plain, where=parse_condition("id < 0", plain.topic.newest.columns), where_version=1)
    assert read(racks.client, "t", nothing, 10 * COUNT) == []
    assert read(racks.client, "t", replace(how, where_version=0), 10 * COUNT) == found
    assert passed_over(racks) == before + 19


def passed_over(cluster: InProcessCluster) -> int:
    return sum(broker.body.context.conversions.passed_over for broker in cluster.brokers.values())


def test_what_is_passed_over_hides_no_end_of_a_transaction(racks: InProcessCluster) -> None:
    transactions = AppendedTransactions(racks, "t", DDL)
    how = reading(racks, "t", "id")
    for number in range(12):
        columns = {ID: pa.array([number] * 50), 2: pa.array(["x" * 200] * 50)}
        transactions.write_batch(
            number % 2 + 1, bytearray(typed_batch(columns, 50, how.topic.newest, now_ms=1_000))
        )
        if number % 4 == 3:
            transactions.end(1, commits=True)
            transactions.end(2, commits=False)
    condition = parse_condition("id in (4, 5, 6)", how.topic.newest.columns)
    wanted = replace(how, where=condition, where_version=1)
    for max_bytes in (2_000, 1 << 20):
        assert [row["id"] for row in read(racks.client, "t", wanted, 12 * 50 + 6, max_bytes)] == (
            [4] * 50 + [6] * 50
        ), "5 was aborted"


REFUSED = [
    ("an id twice", (ID, ID), {}, ErrorCode.invalid_request),
    ("no id of a column", (0,), {}, ErrorCode.invalid_request),
    ("the id of a struct's field", (NESTED,), {}, ErrorCode.invalid_request),
    ("an id that is not given yet", (ID, 6), {}, ErrorCode.not_leader_or_follower),
    ("within a session", (ID,), {"session_epoch": 0}, ErrorCode.invalid_request),
    (
        "by a client that cannot read them",
        (ID,),
        {"payload_kinds": SUPPORTED_PAYLOADS},
        ErrorCode.invalid_request,
    ),
    ("by a follower", (ID,), {"replica_id": 2}, ErrorCode.invalid_request),
    ("of an untyped topic", (ID,), {"topic": "wanted-plain"}, ErrorCode.invalid_request),
    ("with a condition that is none", (ID,), {"condition": b"x"}, ErrorCode.invalid_request),
    ("a condition alone", None, {"condition": b"x"}, ErrorCode.invalid_request),
    ("each once", (MAG, ID), {}, ErrorCode.none),
    ("none", (), {}, ErrorCode.none),
]


def test_wrong_names_of_columns_are_refused(cluster: InProcessCluster) -> None:
    cluster.create_topic("wanted-columns", schema=DDL, replication_factor=1)
    cluster.create_topic("wanted-plain", replication_factor=1)
    cluster.produce("wanted-columns", rows_from(0, 3))  # its leader has the columns then
    for topic in ("wanted-columns", "wanted-plain"):
        node = cluster.brokers[BrokerId(cluster.wait_for_leader(topic))].node
        with Connection.open(node.host, node.port, client_id="columns", timeout_ms=5_000) as connection:
            rows = [row for row in REFUSED if row[2].get("topic", "wanted-columns") == topic]
            found = {row[0]: code_of(connection, row[1], {"topic": topic, **row[2]}) for row in rows}
            assert found == {row[0]: row[3] for row in rows}


def code_of(connection: Connection, columns: tuple[int, ...] | None, more: dict[str, Any]) -> ErrorCode:
    asked = FetchPartition(
        partition=0,
        fetch_offset=0,
        partition_max_bytes=1 << 20,
        columns=columns,
        condition=more.pop("condition", b""),
    )
    topic = FetchTopic(topic=more.pop("topic"), partitions=[asked])
    request = FetchRequest(topics=[topic], max_wait_ms=1, **{"payload_kinds": ALL_PAYLOADS, **more})
    response = connection.call(request, version=12, timeout_ms=20_000)
    if response.error_code is not ErrorCode.none:
        return ErrorCode(response.error_code)
    return ErrorCode(response.responses[0].partitions[0].error_code)
