"""``/topics``: all topics, searched, sorted, and cut into pages by the server."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from sparklog.client.metadata.cluster_metadata import ClusterMetadata, TopicMetadata
from sparklog.model.ids import TopicPartition
from sparklog.web.disks import Disk
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import Question, page_of
from sparklog.web.viewer import Viewer
from sparklog.web.views.overview import known_disks

Row = dict[str, Any]

SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "name": lambda row: row["name"],
    "partitions": lambda row: row["partitions"],
    "size": lambda row: row["size_bytes"],
    "rate": lambda row: row["written_per_s"] or 0,
    "unwell": lambda row: (row["leaderless"], row["under_replicated"]),
}


def topics(viewer: Viewer, question: Question) -> dict[str, object]:
    search = question.text("search").casefold()
    with_internal = question.flag("internal")
    only_unwell = question.choice("only", ("", "unwell")) == "unwell"
    sort = question.choice("sort", tuple(SORTS))
    seen = viewer.metadata()
    sizes = sizes_of_topics(known_disks(viewer), seen)
    rows = [
        {**_row(topic, seen, sizes), "written_per_s": viewer.rates.of_topic(topic.name)}
        for topic in seen.topics.values()
        if search in topic.name.casefold() and (with_internal or only_unwell or not topic.is_internal)
    ]
    if only_unwell:
        rows = [row for row in rows if row["leaderless"] or row["under_replicated"]]
    rows.sort(key=lambda row: row["name"])
    rows.sort(key=SORTS[sort], reverse=question.flag("descending"))
    hidden = 0 if with_internal else sum(topic.is_internal for topic in seen.topics.values())
    commands = [shown(viewer.options, "topics list")]
    return {**page_of(rows, question), "internal": hidden, "commands": commands}


def sizes_of_topics(disks: list[Disk], seen: ClusterMetadata) -> Counter[str]:
    """Bytes of each topic on its leaders' disks."""
    sizes: Counter[str] = Counter()
    for disk in disks:
        for one, replica in disk.replicas.items():
            if is_led_by(seen, one, disk.broker_id):
                sizes[one.topic] += replica.size_bytes
    return sizes


def is_led_by(seen: ClusterMetadata, one: TopicPartition, broker_id: int) -> bool:
    topic = seen.topics.get(one.topic)
    partition = None if topic is None else topic.partitions.get(one.partition)
    return partition is not None and partition.leader == broker_id


def _row(topic: TopicMetadata, seen: ClusterMetadata, sizes: Mapping[str, int]) -> Row:
    partitions = topic.partitions.values()
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "leaderless": sum(one.leader not in seen.brokers for one in partitions),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in partitions),
        "size_bytes": sizes.get(topic.name, 0),
        "is_internal": topic.is_internal,
        "is_typed": topic.schema_version > 0,
    }
