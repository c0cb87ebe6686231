"""Whether the disks have room for what a drain or a fill moves: compared before anything is asked.

The controller knows no sizes. So the same plan is made here, with the sizes that brokers report of their
replicas (DescribeLogDirs): the largest replica of a partition counts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sparklog.cli.progress import say
from sparklog.client.changes import ClusterChanges, LogDirDescription
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.core.placement.least_moves import plan_drain, plan_fill
from sparklog.core.placement.preferred_leaders import Placement
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.model.ids import TopicPartition

MOVES_MAX = 1_000_000


def check_room(cluster: ClusterClient, action: str, brokers: Sequence[int]) -> None:
    """SparklogError, with the bytes, if a destination has less free than it would get."""
    try:
        seen = cluster.metadata(None, max_age_ms=0)
    except ClusterUnavailable:
        return  # nothing can be copied while no broker answers; the controller says what it waits for
    current = {
        TopicPartition(topic.name, number): tuple(state.replicas)
        for topic in seen.topics.values()
        for number, state in topic.partitions.items()
    }
    for partition, move in ClusterChanges(cluster).ongoing_moves().items():
        if partition in current:
            current[partition] = move.target
    racks: dict[int, str | None] = {one: live.rack for one, live in seen.brokers.items()}
    planned = _plan(action, current, brokers, racks)
    directories = {one: _log_dirs(cluster, one) for one in sorted(racks)}
    problems = too_little_room(current, planned, directories)
    if problems:
        raise SparklogError(f"{'; '.join(problems)}; nothing was moved. Make room, or add a broker")


def _plan(
    action: str,
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Sequence[int],
    racks: Mapping[int, str | None],
) -> Placement:
    if action == "drain":
        moving = [one for one, replicas in current.items() if not set(replicas).isdisjoint(brokers)]
        return plan_drain(current, moving, set(brokers), racks)[0]
    live = [one for one in brokers if one in racks]
    return plan_fill(current, live, racks, at_most=MOVES_MAX) if live else {}


def _log_dirs(cluster: ClusterClient, broker: int) -> list[LogDirDescription]:
    try:
        return list(ClusterChanges(cluster).describe_log_dirs(broker).values())
    except (KafkaError, OSError) as error:
        say(f"warning: broker {broker} does not say how much is free: {error}")
        return []


def too_little_room(
    current: Mapping[TopicPartition, Sequence[int]],
    planned: Placement,
    directories: Mapping[int, Sequence[LogDirDescription]],
) -> list[str]:
    """What each broker lacks, in words. Directories whose space is unknown are taken to have room."""
    sizes: defaultdict[TopicPartition, int] = defaultdict(int)
    for described in directories.values():
        for directory in described:
            for partition, replica in directory.replicas.items():
                sizes[partition] = max(sizes[partition], replica.size_bytes)
    coming: defaultdict[int, list[int]] = defaultdict(list)
    for partition, replicas in planned.items():
        for broker in set(replicas) - set(current[partition]):
            coming[broker].append(sizes[partition])
    problems = []
    for broker, found in sorted(coming.items()):
        usable = [one.usable_bytes for one in directories.get(broker, ()) if not one.is_offline]
        if not usable or min(usable) < 0:
            continue
        if sum(found) > sum(usable):
            problems.append(
                f"broker {broker} has {sum(usable):,} bytes free, and would get {sum(found):,} bytes"
            )
        elif max(found) > max(usable):
            problems.append(
                f"broker {broker} would get a replica of {max(found):,} bytes, and no log directory there "
                f"has more than {max(usable):,} bytes free"
            )
    return problems
