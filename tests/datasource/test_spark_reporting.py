"""Streaming queries are groups to Kafka's tools: their offsets and lag, running, idle and ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from sparklog.client.group.group_admin import GroupAdmin
from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S, Batches, run
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.every_spark, pytest.mark.proof]

Frames = Callable[..., Any]


def offsets_of(cluster: InProcessCluster, group: str) -> dict[int, int]:
    """What Kafka's administration finds of a group, by partition."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found: list[TopicPartition] = future.result(30).topic_partitions
    return {place.partition: place.offset for place in found}


def test_a_query_is_a_group_that_shows_its_offsets_while_it_runs_and_when_it_has_ended(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("as-group", partitions=2)
    cluster.produce("as-group", ["x"] * 3, partition=0)
    frame = read_stream("as-group", startingOffsets="earliest", **{"kafka.group.id": "of-the-user"})
    writer = frame.writeStream.foreachBatch(Batches()).option("checkpointLocation", str(tmp_path))
    query = writer.start()
    group = f"sparklog-query-{query.id}"
    try:
        query.processAllAvailable()
        until(lambda: offsets_of(cluster, group) == {0: 3, 1: 0}, "the first offsets of the group")
        cluster.produce("as-group", ["x"] * 4, partition=1)
        query.processAllAvailable()
        until(lambda: offsets_of(cluster, group) == {0: 3, 1: 4}, "the next offsets of the group")
    finally:
        query.stop()
    assert query.awaitTermination(WAIT_S)
    listed = {found.group_id: found.group_state for found in GroupAdmin(cluster.client).list_groups()}
    assert listed[group] == "Empty"
    assert "of-the-user" not in listed


def test_a_query_has_the_group_that_the_user_names_or_none(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("named-group")
    cluster.produce("named-group", ["a", "b"])
    writer = read_stream("named-group", startingOffsets="earliest").writeStream.queryName("orders eu")
    query = writer.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    by_name = f"sparklog-query-orders eu-{str(query.id)[:8]}"
    until(lambda: offsets_of(cluster, by_name) == {0: 2}, "the offsets of the query with a name")
    named = read_stream("named-group", startingOffsets="earliest", reportAs="billing-stream")
    run(named, Batches(), tmp_path / "named")
    until(lambda: offsets_of(cluster, "billing-stream") == {0: 2}, "the offsets of the named group")
    before = {found.group_id for found in GroupAdmin(cluster.client).list_groups()}
    sink = Batches()
    run(read_stream("named-group", startingOffsets="earliest", reportOffsets="false"), sink, tmp_path / "off")
    assert sink.all == ["a", "b"]
    assert {found.group_id for found in GroupAdmin(cluster.client).list_groups()} == before


@pytest.mark.proof
def test_a_group_that_refuses_never_stops_the_query(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    """A group with members takes offsets from its members only."""
    from confluent_kafka import Consumer

    cluster.create_topic("refusing-group")
    cluster.produce("refusing-group", ["a"])
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "with-members"})
    consumer.subscribe(["refusing-group"])
    until(lambda: (consumer.poll(0.1), consumer.assignment())[1] != [], "the consumer's assignment")
    sink = Batches()
    try:
        options = {"startingOffsets": "earliest", "reportAs": "with-members"}
        run(read_stream("refusing-group", **options), sink, tmp_path)
    finally:
        consumer.close()
    assert sink.all == ["a"]
