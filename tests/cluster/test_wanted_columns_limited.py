"""Readers that name columns where connections are encrypted, and where a quota binds them."""

from pathlib import Path
from typing import Any

import pytest

from sparklog.model.ids import BrokerId
from sparklog.model.parts import parts_length
from sparklog.network.dialing.connection import Connection
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.certificates import Authority
from tests.cluster.test_quotas import set_quota
from tests.cluster.test_wanted_columns import COUNT, DDL, MAG, read, reading, rows_from, sent_bytes
from tests.waiting import until

pytestmark = pytest.mark.integration

RATE = 20_000
WINDOWS = 3
BATCHES = 10
"""Of 400 rows: 50 KB each, and 3.6 KB of the wanted column."""


def test_a_column_leaves_alone_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {
        "listeners": "SSL://:0",
        "security.inter.broker.protocol": "SSL",
        **authority.settings(authority.issue("broker"), client_auth="required"),
    }
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        cluster.create_topic("t", schema=DDL)
        for first in range(0, BATCHES * COUNT, COUNT):
            cluster.produce("t", rows_from(first))
        before = sum(sent_bytes(cluster, "t").values())
        found = read(cluster.client, "t", reading(cluster, "t", "mag"), BATCHES * COUNT, max_bytes=9_000)
        assert found == [{"mag": n / 2, "_offset": n} for n in range(BATCHES * COUNT)]
        assert BATCHES * COUNT * 8 < sum(sent_bytes(cluster, "t").values()) - before < 60_000


def test_a_quota_counts_what_is_sent_and_not_what_is_left_out(tmp_path: Path) -> None:
    windows = {"quota.window.num": str(WINDOWS), "quota.window.size.seconds": "1"}
    with InProcessCluster(tmp_path, brokers=1, settings=windows) as cluster:
        cluster.create_topic("t", schema=DDL)
        for first in range(0, BATCHES * COUNT, COUNT):
            cluster.produce("t", rows_from(first))
        limit_to_rate(cluster, "columns")
        node = cluster.brokers[BrokerId(1)].node
        with Connection.open(node.host, node.port, client_id="columns", timeout_ms=20_000) as connection:
            size, waits_ms = fetched(connection, (MAG,))
            assert BATCHES * COUNT * 8 < size < 2 * RATE, "of half a megabyte of the log"
            assert waits_ms == 0
            sent = size
            while not waits_ms:
                size, waits_ms = fetched(connection, (MAG,))
                sent += size
            assert sent >= RATE, "what was sent of columns reaches the quota"
        limit_to_rate(cluster, "everything")
        with Connection.open(node.host, node.port, client_id="everything", timeout_ms=20_000) as connection:
            assert fetched(connection, None)[1] > 0, "the same batches whole are more than the quota at once"


def limit_to_rate(cluster: InProcessCluster, client_id: str) -> None:
    assert set_quota(cluster, {"client-id": client_id}, consumer_byte_rate=float(RATE)).error_code == 0
    table = cluster.brokers[BrokerId(1)].body.context.quotas.book.of_clients["consumer_byte_rate"]
    until(lambda: getattr(table.find("ANONYMOUS", client_id), "bound", None) == RATE)


def fetched(connection: Connection, columns: tuple[int, ...] | None) -> tuple[int, int]:
    """The bytes of the batches in the answer, and the milliseconds that the client is to wait."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, columns=columns)
    request = FetchRequest(
        topics=[FetchTopic(topic="t", partitions=[asked])],
        max_wait_ms=1,
        max_bytes=1 << 20,
        payload_kinds=ALL_PAYLOADS,
    )
    answer: Any = connection.call(request, version=12, timeout_ms=20_000)
    sizes = [parts_length(part.records or ()) for topic in answer.responses for part in topic.partitions]
    return sum(sizes), answer.throttle_time_ms
