"""Typed topics out of a store: readers of every kind get the same rows, and so does who opens a file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.client.topic_schemas import alter_schema, describe_schemas
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.typed_decoding import TypedReading
from sparklog.storage.log import Log
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = pytest.mark.integration

PLACE = TopicPartition("t", 0)
DDL = "id bigint NOT NULL, mag float, place string"
TIERED = in_the_store_only(20_000)
COUNT = 100


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def cluster(tmp_path: Path, store: Path) -> Iterator[InProcessCluster]:
    settings = copying_at_once(f"file://{store}")
    with InProcessCluster(tmp_path / "cluster", settings=settings) as running:
        yield running


def rows_from(first: int, **more: Any) -> pa.Table:
    ids = range(first, first + COUNT)
    mags = pa.array([n / 4 for n in ids], pa.float32())
    return pa.table({"id": pa.array(ids, pa.int64()), "mag": mags, **more})


def texts(first: int) -> list[str]:
    return [f"{n:0100d}" for n in range(first, first + COUNT)]


def columns_of(cluster: InProcessCluster) -> TopicColumns:
    return TopicColumns(describe_schemas(cluster.client, ["t"])["t"])


def logs(cluster: InProcessCluster) -> list[Log]:
    found = [broker.body.replicas.get(PLACE) for broker in cluster.brokers.values()]
    return [replica.log for replica in found if replica is not None]


def wait_until_moved(cluster: InProcessCluster, offset: int) -> None:
    until(lambda: all(log.local_start_offset >= offset for log in logs(cluster)))
    assert all(log.log_start_offset == 0 for log in logs(cluster))


def read(cluster: InProcessCluster, how: TypedReading, end: int) -> list[dict[str, Any]]:
    found = read_range(
        cluster.client, PLACE, 0, end, typed=how, isolation_level=IsolationLevel.READ_COMMITTED
    )
    return [row for batch in found for row in batch.to_pylist()]


def files_of(store: Path) -> list[pa.Table]:
    """The tables in the store, in the order of offsets."""
    tables = [pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in store.rglob("*.arrow")]
    return sorted(tables, key=lambda table: table.column("_offset")[0].as_py())


def test_rows_of_all_versions_come_out_of_the_store_as_they_do_from_the_disks(
    cluster: InProcessCluster, store: Path
) -> None:
    cluster.create_topic("t", schema=DDL, key="id", configs=TIERED)
    for first in range(0, 300, COUNT):
        cluster.produce("t", rows_from(first, place=texts(first)))
    changes = [("rename-column", "mag=size"), ("drop-column", "place"), ("add-column", "note string")]
    alter_schema(
        cluster.client, "t", columns_of(cluster).document, [parse_change(*change) for change in changes]
    )
    for first in range(300, 800, COUNT):
        cluster.produce("t", rows_from(first, note=texts(first)).rename_columns(["id", "size", "note"]))
    wait_until_moved(cluster, 500)
    expected = [{"id": n, "size": n / 4, "note": None if n < 300 else f"{n:0100d}"} for n in range(800)]
    assert cluster.rows("t", at_least=800).to_pylist() == expected
    last = cluster.consume("t", at_least=800)[-1]
    assert (last.key, last.value) == (b"799", b'{"id":799,"size":199.75,"note":"%0100d"}' % 799)
    tables = files_of(store)
    offsets = [offset for table in tables for offset in table.column("_offset").to_pylist()]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 500
    assert [("mag" in table.schema.names) for table in tables] == [
        table.column("_offset")[0].as_py() < 300 for table in tables
    ], "no file has rows of both versions"
    newest = pyarrow.dataset.dataset([table for table in tables if "size" in table.schema.names])
    found = newest.to_table(columns=["id", "size", "note"]).to_pylist()
    assert found == expected[300 : len(offsets)]


def test_wanted_columns_and_rows_come_out_of_the_store(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", schema=DDL, configs=TIERED)
    for first in range(0, 800, COUNT):
        cluster.produce("t", rows_from(first, place=texts(first)))
    wait_until_moved(cluster, 500)
    columns = columns_of(cluster)
    plain = TypedReading(columns, columns.newest.columns[1:2], with_times=False)
    how = replace(
        plain, where=parse_condition("id between 205 and 207", columns.newest.columns), where_version=1
    )
    expected = [{"mag": n / 4, "_offset": n} for n in range(800)]
    assert read(cluster, plain, 800) == expected
    assert read(cluster, how, 800) == expected[205:208]


def test_rows_of_aborted_transactions_are_in_no_file_and_no_answer(
    cluster: InProcessCluster, store: Path
) -> None:
    transactions = AppendedTransactions(cluster, "t", DDL)
    ClusterChanges(cluster.client).alter_topic_configs("t", TIERED)
    until(lambda: all(log.config.remote_storage for log in logs(cluster)))
    columns, committed = columns_of(cluster), []
    for number in range(12):
        ids = [number] * COUNT
        present = {1: pa.array(ids, pa.int64()), 3: pa.array([f"{number}" * 100] * COUNT)}
        transactions.write_batch(number, bytearray(typed_batch(present, COUNT, columns.newest, now_ms=1_000)))
        transactions.end(number, commits=number % 3 != 0)
        committed += ids if number % 3 else []
    end = 12 * (COUNT + 1)
    wait_until_moved(cluster, end // 2)
    assert [
        row["id"] for row in read(cluster, TypedReading(columns, columns.newest.columns[:1]), end)
    ] == committed
    in_files = [row for table in files_of(store) for row in table.select(["_offset", "id"]).to_pylist()]
    assert len(in_files) > len(committed) / 3
    assert (
        in_files
        == [
            {"_offset": number * (COUNT + 1) + nth, "id": number}
            for number in range(12)
            if number % 3
            for nth in range(COUNT)
        ][: len(in_files)]
    )
