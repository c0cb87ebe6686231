"""Topics and records of a test's cluster, as one user of it has them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pyarrow as pa

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import SparklogError
from sparklog.model.schema.schema_settings import schema_settings
from sparklog.testing.arrow_tables import read_table, send_table
from sparklog.testing.records import Record, Sendable, read_records, send_records

WAIT_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.01


def wait_until(is_so: Callable[[], bool], story: Callable[[], str]) -> None:
    """SparklogError with ``story`` if it is not so in time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise SparklogError(f"not within {WAIT_SECONDS:.0f} s: {story()}")
        time.sleep(POLL_SECONDS)


class TopicsAndRecords(ABC):
    """What is done with topics through ``client``, in the name of its user."""

    @property
    @abstractmethod
    def client(self) -> ClusterClient:
        """A connected client, closed with the cluster."""

    @property
    @abstractmethod
    def broker_count(self) -> int:
        """How many brokers the cluster has, those that are down included."""

    @property
    def admin(self) -> Admin:
        return Admin(self.client)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        schema: str = "",
        key: str = "",
        timestamp: str = "",
    ) -> None:
        """Create a topic; by default every broker has a replica of it.

        ``schema`` gives a typed topic its columns, in Spark's DDL; ``key`` and ``timestamp`` name columns.
        """
        factor = self.broker_count if replication_factor < 0 else replication_factor
        settings = {**(configs or {}), **schema_settings(schema, key, timestamp)}
        self.admin.create_topics(
            [NewTopic(name=name, partitions=partitions, replication_factor=factor, configs=settings)]
        )

    def produce(
        self, topic: str, records: Iterable[Sendable] | pa.Table, *, partition: int | None = None
    ) -> None:
        """Write records with acks=all; returns when all are acknowledged.

        Each is a value or a pair of key and value; strings are written as UTF-8. A typed topic takes a
        pyarrow table instead. Without ``partition`` the key decides, as it does for Kafka's producers.
        """
        if isinstance(records, pa.Table):
            send_table(self.client, topic, records, partition)
        else:
            send_records(self.client, topic, records, partition)

    def consume(self, topic: str, *, at_least: int = 0) -> list[Record]:
        """Everything in the topic, by partition and offset, once there are ``at_least`` so many records."""
        records: list[Record] = []

        def are_enough() -> bool:
            records[:] = read_records(self.client, topic)
            return len(records) >= at_least

        wait_until(
            are_enough, lambda: f"{topic!r} has {len(records)} records, not {at_least}: {records[:10]}"
        )
        return records

    def rows(self, topic: str, *, at_least: int = 0) -> pa.Table:
        """All rows of a typed topic, by partition and offset, once there are ``at_least`` so many."""
        table = read_table(self.client, topic)

        def are_enough() -> bool:
            nonlocal table
            table = read_table(self.client, topic)
            return len(table) >= at_least

        if table.num_rows < at_least:
            wait_until(are_enough, lambda: f"{topic!r} has {table.num_rows} rows, not {at_least}")
        return table
