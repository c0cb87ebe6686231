"""The bytes that brokers send for a topic's rows, of one column or of all."""

from typing import Final

from bench.clusters import Sparklog
from sparklog.client.cluster import ClusterClient
from sparklog.client.fetched import FetchTerms, answers_of, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import latest
from sparklog.client.reader import FETCH_BYTES, MAX_WAIT_MS
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.ids import TopicPartition
from sparklog.records.payload_kinds import ALL_PAYLOADS

TIMEOUT_MS: Final = 60_000


def sent_mb(cluster: Sparklog, topic: str, column: str = "") -> float:
    """What all partitions are answered with, for fetches of one ``column``; of all without a name."""
    with ClusterClient(cluster.bootstrap, client_id="bench-typed") as client:
        columns = None
        if column:
            schema = describe_schemas(client, [topic])[topic].at(1)
            columns = tuple(one.id for one in schema if one.name == column)
        places = client.topic(topic).topic_partitions()
        ends = latest(client, places, IsolationLevel.READ_COMMITTED)
        return sum(_sent_bytes(client, place, ends[place], columns) for place in places) / 1e6


def _sent_bytes(
    client: ClusterClient, place: TopicPartition, end: int, columns: tuple[int, ...] | None
) -> int:
    leader = client.latest_metadata.leader(place)
    if not isinstance(leader, KnownLeader):
        raise RuntimeError(f"{place} has no leader: {leader}")
    terms = FetchTerms(MAX_WAIT_MS, FETCH_BYTES, FETCH_BYTES, 1, payload_kinds=ALL_PAYLOADS, columns=columns)
    connection = client.borrow(client.latest_metadata.endpoint(leader.broker_id), client.deadline(TIMEOUT_MS))
    position = size = 0
    while position < end:
        request = fetch_request({place: leader}, {place: position}, terms)
        answer = answers_of(connection.call(request, timeout_ms=TIMEOUT_MS), {place: leader})[place]
        found = fetched_of(place, position, answer)
        position, size = found.next_offset, size + len(found.records)
    client.discard(connection)
    return size
