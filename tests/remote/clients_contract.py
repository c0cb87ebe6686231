"""What clients and Spark must read of a log whose beginning is in a store alone, whatever store it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import kafka
import pytest

from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

BEGAN_MS: Final = 1_600_000_000_000
STEP_MS: Final = 1_000
PLAIN, IN_A_TRANSACTION, TAIL = 30, 10, 5
LATE = PLAIN + IN_A_TRANSACTION
"""Which of the records that count is the first of the second transaction that commits."""
WAIT_S: Final = 60.0
FRUGAL: Final = {
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "100",
}
TIERED: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": "1500",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}

Seen = tuple[int, int, str]
"""A record's offset, timestamp and value."""


@dataclass
class History:
    """A cluster with the topic ``t``. ``committed`` and ``every`` are its records."""

    cluster: InProcessCluster
    committed: list[Seen]
    every: list[Seen]

    def await_move(self) -> None:
        """Until no disk has a record of a transaction, and none of before."""
        held = [broker.body.replicas for broker in self.cluster.brokers.values()]
        logs = [replicas.get(TopicPartition("t", 0)).log for replicas in held]
        first_of_tail = self.every[-TAIL][0]
        until(
            lambda: all(log.local_start_offset >= first_of_tail for log in logs),
            lambda: [(log.local_start_offset, log.log_end_offset) for log in logs],
        )
        assert {log.log_start_offset for log in logs} == {0}

    def fill(self) -> None:
        servers = {"bootstrap.servers": self.cluster.bootstrap_servers, "linger.ms": 0}
        self._write(confluent_kafka.Producer(servers), PLAIN, "plain")
        producer = confluent_kafka.Producer({**servers, "transactional.id": "one"})
        producer.init_transactions(WAIT_S)
        for title in ("first", "aborted", "second"):
            producer.begin_transaction()
            self._write(producer, IN_A_TRANSACTION, title)
            if title == "aborted":
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
        self._write(confluent_kafka.Producer(servers), TAIL, "tail")

    def _write(self, producer: confluent_kafka.Producer, count: int, title: str) -> None:
        for number in range(count):
            seen: list[Any] = []
            time_ms, value = BEGAN_MS + len(self.every) * STEP_MS, f"{title} {number} {'x' * 250}"
            producer.produce(
                "t", value, timestamp=time_ms, on_delivery=lambda _, message, seen=seen: seen.append(message)
            )
            assert producer.flush(WAIT_S) == 0
            record = (seen[0].offset(), time_ms, value)
            self.every.append(record)
            if title != "aborted":
                self.committed.append(record)


class ClientsContract:
    """Subclasses have a fixture ``url`` of their class's scope: that of an empty store."""

    @pytest.fixture(scope="class")
    @classmethod
    def history(cls, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
        root: Path = tmp_path_factory.mktemp("cluster")
        settings = {"remote.log.storage.url": url, **FRUGAL}
        with InProcessCluster(root, settings=settings) as cluster:
            cluster.create_topic("t", configs=TIERED)
            history = History(cluster, [], [])
            history.fill()
            history.await_move()
            yield history
            assert sum(broker.body.copies.reader.counts.requests for broker in cluster.brokers.values()) > 0
            assert sum(broker.body.copies.reader.counts.errors for broker in cluster.brokers.values()) == 0

    @pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
    def test_librdkafka_reads_from_offset_0(self, history: History, isolation: str) -> None:
        expected = history.committed if isolation == "read_committed" else history.every
        consumer = librdkafka(history, isolation)
        try:
            consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
            seen: list[Seen] = []
            while len(seen) < len(expected):
                message = consumer.poll(WAIT_S)
                assert message is not None, seen[-1:]
                assert message.error() is None, message.error()
                seen.append((message.offset(), message.timestamp()[1], message.value().decode()))
        finally:
            consumer.close()
        assert seen == expected

    @pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
    def test_kafka_python_reads_from_offset_0(self, history: History, isolation: str) -> None:
        expected = history.committed if isolation == "read_committed" else history.every
        consumer = kafka_python(history, isolation)
        try:
            consumer.assign([kafka.TopicPartition("t", 0)])
            consumer.seek(kafka.TopicPartition("t", 0), 0)
            messages = [next(consumer) for _ in expected]
        finally:
            consumer.close()
        assert [(one.offset, one.timestamp, one.value.decode()) for one in messages] == expected

    def test_clients_find_offsets_by_time(self, history: History) -> None:
        ours, theirs = librdkafka(history, "read_committed"), kafka_python(history, "read_committed")
        try:
            for offset, time_ms, _ in (history.every[n] for n in (0, 17, PLAIN + 3)):
                for asked_ms in (time_ms, time_ms - STEP_MS + 1):
                    asked = confluent_kafka.TopicPartition("t", 0, asked_ms)
                    (found,) = ours.offsets_for_times([asked], WAIT_S)
                    place = kafka.TopicPartition("t", 0)
                    told = theirs.offsets_for_times({place: asked_ms})[place]
                    assert (found.offset, told.offset, told.timestamp) == (offset, offset, time_ms)
        finally:
            ours.close()
            theirs.close()

    @pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
    def test_spark_reads_from_offset_0(self, history: History, spark: Any, isolation: str) -> None:
        expected = history.committed if isolation == "read_committed" else history.every
        assert rows(history, spark, **{"kafka.isolation.level": isolation}) == expected

    def test_spark_reads_from_a_time_on(self, history: History, spark: Any) -> None:
        late = history.committed[LATE:]
        assert rows(history, spark, startingTimestamp=str(late[0][1])) == late


def librdkafka(history: History, isolation: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": history.cluster.bootstrap_servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
        }
    )


def kafka_python(history: History, isolation: str) -> kafka.KafkaConsumer:
    return kafka.KafkaConsumer(
        bootstrap_servers=history.cluster.bootstrap_servers.split(","),
        consumer_timeout_ms=int(WAIT_S * 1000),
        isolation_level=isolation,
        auto_offset_reset="none",
    )


def rows(history: History, spark: Any, **options: str) -> list[Seen]:
    """By the data source, in the order of offsets."""
    source = spark.read.format("sparklog").option("bootstrap.servers", history.cluster.bootstrap_servers)
    read = source.option("subscribe", "t").options(**options).load().orderBy("offset")
    columns = read.selectExpr("offset", "unix_millis(timestamp) AS ms", "string(value) AS text")
    return [(row.offset, row.ms, row.text) for row in columns.collect()]
