"""A segment of real brokers as a remote one: committed rows for others' readers, every batch back."""

import confluent_kafka
import pyarrow as pa
import pytest

from sparklog.client.producer import BatchProducer
from sparklog.model.ids import TopicPartition
from sparklog.records.envelope import Compression, split
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.records.remote_segment.build import SegmentBatch, SegmentBuilder
from sparklog.records.remote_segment.rest_object import open_rest_object, rebuild
from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.inspection.inspect_index import aborted_transactions
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.records.remote_segment.segments import IDENTITY, Built, reader

pytestmark = pytest.mark.integration

PLACE = TopicPartition("t", 0)


def fill(transactions: AppendedTransactions) -> None:
    """Batches of librdkafka and of ours, records and arrow, committed and aborted."""
    cluster = transactions.cluster
    for codec in ("gzip", "zstd", "none"):
        client = confluent_kafka.Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, "linger.ms": 5}
        )
        for number in range(200):
            client.produce("t", f"{codec} {number}", key=f"k{number}", headers={"n": b"1"})
        assert client.flush(30) == 0
    with BatchProducer(cluster.client) as producer:
        for compression in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
            rows = pa.table({"value": [f"arrow {number}".encode() for number in range(500)]})
            producer.send(
                PLACE, payload(PayloadKind.ARROW).from_columns(rows, now_ms=1_000, compression=compression)
            )
    transactions.write(1, b"committed")
    transactions.write(2, b"aborted")
    transactions.end(2, commits=False)
    transactions.end(1, commits=True)


def segment_of(transactions: AppendedTransactions) -> tuple[bytes, list[SegmentBatch]]:
    """The leader's only segment, and its batches."""
    folder = transactions.cluster.root / f"broker-{transactions.leader}" / "0" / "t-0"
    log = (folder / f"{0:020d}.log").read_bytes()
    with InspectedFile(str(folder / f"{0:020d}.txnindex")) as file:
        aborted = list(aborted_transactions(file))
    return log, [
        SegmentBatch(
            header,
            memoryview(log)[position : position + header.size_bytes],
            any(
                one.producer_id == header.producer_id
                and one.first_offset <= header.base_offset <= one.last_offset
                for one in aborted
            ),
        )
        for position, header in split(log)
    ]


def test_a_segment_of_real_brokers_goes_into_both_objects_and_comes_back(tmp_path) -> None:
    with InProcessCluster(tmp_path) as cluster:
        transactions = AppendedTransactions(cluster, "t")
        fill(transactions)
        log, batches = segment_of(transactions)
        builder = SegmentBuilder(IDENTITY)
        arrow = b"".join(builder.arrow_pieces(batches))
        built = Built(batches, arrow, b"".join(builder.rest_pieces(batches)))
        _, entries = open_rest_object(reader(built.rest), len(built.rest))
        assert b"".join(rebuild(one, reader(built.rest), reader(built.arrow)) for one in entries) == log
        assert {batch.header.is_arrow for batch in batches} == {True, False}
        assert built.table().to_pylist() == built.expected_rows()
        values = built.table().column("value").to_pylist()
        assert len(values) == 3 * 200 + 3 * 500 + 1
        assert values[-1] == b"committed"
