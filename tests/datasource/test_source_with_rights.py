"""A write needs WRITE on its topics and a read READ, and no other right: called as Spark calls it."""

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from pyspark_sparklog import DefaultSource
from sparklog.testing import InProcessCluster
from sparklog_datasource import clients

ROWS = StructType().add("value", StringType())
TOPIC = "rows-of-two"

# A job that tried again would do so for ten minutes.
pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with InProcessCluster(tmp_path_factory.mktemp("rights"), brokers=1, secure=True) as running:
        running.create_topic(TOPIC, partitions=2)
        for user, operation in (("writer", "write"), ("reader", "read")):
            running.as_user(user)
            running.allow(user, operation, topic=TOPIC)
        yield running
        for connection in list(clients._clients):
            clients._clients.pop(connection).close()


def write(options, delivery, *values):
    writer = DefaultSource({**options, "topic": TOPIC, "delivery": delivery}).writer(ROWS, overwrite=False)
    writer.commit([writer.write(iter([pa.record_batch({"value": pa.array(values, pa.string())})]))])


def read(options):
    source = DefaultSource({**options, "subscribe": TOPIC, "valueformat": "string"})
    reader = source.reader(source.schema())
    batches = [rows for partition in reader.partitions() for rows in reader.read(partition)]
    return [value for rows in batches for value in rows.column("value").to_pylist()]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_who_may_only_write_writes_and_who_may_only_read_reads_it(cluster, delivery):
    write(cluster.as_user("writer").options, delivery, delivery)
    assert delivery in read(cluster.as_user("reader").options)
