"""``/topics/NAME``: one topic's partitions, settings, readers, and what holds its readers back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sparklog.client import offsets
from sparklog.client.calls.retry import Deadline
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader, TopicMetadata
from sparklog.client.offsets import CONSUMER, DEBUG_REPLICA, RemoteShare, offsets_request, read_offsets
from sparklog.client.settings import describe_topic
from sparklog.client.transactions.transaction_admin import TransactionAdmin
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import Question, page_of
from sparklog.web.viewer import SLOW_MS, Viewer
from sparklog.web.views.overview import known_disks
from sparklog.web.views.record_views import topic_of
from sparklog.web.views.topic_list import sizes_of_topics
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsRequest,
)

Row = dict[str, Any]
OFFSETS_TIMEOUT_MS: Final = 1_500
"""How long leaders may take; the offsets of those that do not answer are not known."""


def topic(viewer: Viewer, question: Question) -> dict[str, object]:
    found = topic_of(viewer, question)
    listed = page_of(found.topic_partitions(), question)
    partitions = listed.pop("rows")
    assert isinstance(partitions, list)
    seen, disks = viewer.metadata(), known_disks(viewer)
    return {
        **listed,
        "name": found.name,
        "topic_id": str(found.topic_id),
        "is_internal": found.is_internal,
        "is_typed": found.schema_version > 0,
        "partitions": len(found.partitions),
        "replication_factor": found.replication_factor,
        "leaderless": sum(one.leader not in seen.brokers for one in found.partitions.values()),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in found.partitions.values()),
        "size_bytes": sizes_of_topics(disks, seen).get(found.name, 0),
        "written_per_s": viewer.rates.of_topic(found.name),
        "rows": _partitions(viewer, found, partitions),
        "settings": viewer.shared.get(("topic", found.name), SLOW_MS, lambda: _settings(viewer, found.name)),
        "readers": _readers(viewer, found.name),
        "open": viewer.shared.get(
            ("open", found.name, listed["page"]), SLOW_MS, lambda: _open_transactions(viewer, partitions)
        ),
        "commands": [shown(viewer.options, "topics describe", name=found.name)],
    }


def _partitions(viewer: Viewer, found: TopicMetadata, wanted: Sequence[TopicPartition]) -> list[Row]:
    """-1 is an offset that is not known."""
    seen, deadline = viewer.metadata(), viewer.cluster.deadline(OFFSETS_TIMEOUT_MS)
    starts = offsets.ask_once(viewer.cluster, seen, wanted, EARLIEST_TIMESTAMP, CONSUMER, deadline)
    ends = offsets.ask_once(viewer.cluster, seen, wanted, LATEST_TIMESTAMP, DEBUG_REPLICA, deadline)
    marks = offsets.ask_once(viewer.cluster, seen, wanted, LATEST_TIMESTAMP, CONSUMER, deadline)
    stable = _last_stable(viewer, wanted, deadline)
    shares = offsets.local_starts(viewer.cluster, seen, wanted, deadline)
    sizes = {
        (one, disk.broker_id): replica.size_bytes
        for disk in known_disks(viewer)
        for one, replica in disk.replicas.items()
        if one.topic == found.name
    }
    rows = []
    for one in wanted:
        state = found.partitions[one.partition]
        rows.append(
            {
                "partition": one.partition,
                "leader": int(state.leader),
                "is_led": state.leader in seen.brokers,
                "leader_epoch": state.leader_epoch,
                "replicas": list(state.replicas),
                "isr": list(state.isr),
                "lost_in_epoch": state.lost_in_epoch,
                "log_start_offset": starts[one],
                "last_stable_offset": stable.get(one, -1),
                "high_watermark": marks[one],
                "log_end_offset": ends[one],
                "size_bytes": sizes.get((one, int(state.leader)), -1),
                **_remote(shares[one][1]),
            }
        )
    return rows


def _remote(share: RemoteShare | None) -> Row:
    if share is None:
        return {"remote_size_bytes": None, "remote_trouble": ""}
    return {"remote_size_bytes": share.size_bytes, "remote_trouble": share.trouble}


def _last_stable(
    viewer: Viewer, wanted: Iterable[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, int]:
    times = dict.fromkeys(wanted, LATEST_TIMESTAMP)

    def build(leaders: Mapping[TopicPartition, KnownLeader]) -> ListOffsetsRequest:
        return offsets_request(leaders, times, IsolationLevel.READ_COMMITTED, CONSUMER)

    answers = viewer.cluster.ask_leaders(times, viewer.metadata(), build, read_offsets, deadline)
    return {one: found.offset for one, (_, found) in answers.items() if found is not None}


def _settings(viewer: Viewer, name: str) -> list[Row] | None:
    """The topic's own first, then those of brokers, then defaults; None if this user may not see them."""
    try:
        described = describe_topic(viewer.cluster, name)
    except KafkaError:
        return None
    ordered = sorted(described.values(), key=lambda one: (one.source, one.name))
    return [
        {
            "name": one.name,
            "value": one.value,
            "source": one.source.name.lower().replace("_", " "),
            "is_default": one.source is ConfigSource.DEFAULT,
        }
        for one in ordered
    ]


def _readers(viewer: Viewer, name: str) -> list[Row]:
    """Groups and queries that have committed offsets of the topic, the one that lags most first; those that
    this user may see.
    """
    rows = []
    try:
        groups = viewer.lags().groups.values()
    except KafkaError:
        return []
    for group in groups:
        own = [one for one in group.partitions if one.topic_partition.topic == name]
        if own:
            rows.append(
                {
                    "group_id": group.listing.group_id,
                    "state": group.listing.group_state,
                    "lag": sum(one.lag for one in own),
                    "partitions": len(own),
                    "query": group.query(),
                }
            )
    return sorted(rows, key=lambda row: -row["lag"])


def _open_transactions(viewer: Viewer, partitions: Sequence[TopicPartition]) -> list[Row] | None:
    """Those that hold readers back in these partitions, the oldest first; None if leaders do not answer."""
    admin = TransactionAdmin(viewer.cluster)
    try:
        producers = admin.producers(partitions)
        rows: list[Row] = [
            {
                "partition": one.partition,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "open_since": producer.open_since,
                "last_timestamp_ms": producer.last_timestamp_ms,
            }
            for one, found in producers.items()
            for producer in found
            if producer.open_since >= 0
        ]
        ids = sorted({row["producer_id"] for row in rows})
        names = (
            {one.producer_id: one.transactional_id for one in admin.list_transactions((), ids)} if ids else {}
        )
    except (OSError, SparklogError):
        return None  # offsets and leaders above say what is wrong
    return [
        {**row, "transactional_id": names.get(row["producer_id"])}
        for row in sorted(rows, key=lambda row: row["last_timestamp_ms"])
    ]
