"""The throttle of a reassignment (KIP-73), as settings that are set before the moves and removed afterwards.

Each broker gets a rate for sending and a rate for fetching. Each topic lists the throttled replicas: the
current replicas as senders, the added replicas as fetchers. A remaining throttle would slow down every later
recovery, so ``execute`` and ``verify`` remove it when no move is under way.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sparklog.cli.progress import say
from sparklog.client.changes import ClusterChanges, OngoingMove
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import Settings, describe_broker, describe_topic
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ConfigSource

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


def set_throttle(
    cluster: ClusterClient,
    before: Mapping[TopicPartition, tuple[int, ...]],
    plan: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, OngoingMove],
    bytes_per_s: int,
) -> list[int]:
    """Throttle the moves from ``before`` to ``plan`` and other moves under way; the throttled brokers."""
    changes = ClusterChanges(cluster)
    senders = {one: (*replicas, *_held(ongoing, one)) for one, replicas in before.items() if one in plan}
    targets = {one: move.target for one, move in ongoing.items() if one not in plan} | dict(plan)
    for topic in sorted({one.topic for one in targets}):
        leaders, followers = [], []
        for partition in sorted(one for one in targets if one.topic == topic):
            sending = senders.get(partition) or _held(ongoing, partition)
            adding = set(targets[partition]) - set(sending)
            leaders += [f"{partition.partition}:{broker}" for broker in sorted(set(sending))]
            followers += [f"{partition.partition}:{broker}" for broker in sorted(adding)]
        lists = {LEADER_REPLICAS: ",".join(leaders), FOLLOWER_REPLICAS: ",".join(followers)}
        changes.alter_topic_configs(topic, lists)
    brokers = {one for replicas in (*senders.values(), *targets.values()) for one in replicas}
    brokers |= {one for move in ongoing.values() for one in move.replicas}
    for broker in sorted(brokers):
        changes.alter_broker_configs(broker, dict.fromkeys(RATES, str(bytes_per_s)))
    return sorted(brokers)


def _held(ongoing: Mapping[TopicPartition, OngoingMove], partition: TopicPartition) -> tuple[int, ...]:
    """The replicas of a moving partition before its move."""
    move = ongoing.get(partition)
    return () if move is None else tuple(one for one in move.replicas if one not in move.adding)


def remove_throttle(cluster: ClusterClient, topics: Iterable[str]) -> tuple[list[int], list[str]]:
    """Remove the throttle from every broker and from these topics; the names of those that had one."""
    changes = ClusterChanges(cluster)
    brokers, limited = [], []
    for broker in sorted(cluster.metadata([], max_age_ms=0).brokers):
        found = _set_by(_settings_of(cluster, broker), RATES, ConfigSource.DYNAMIC_BROKER)
        if found:
            changes.alter_broker_configs(broker, found)
            brokers.append(int(broker))
    for topic in sorted(set(topics)):
        try:
            found = _set_by(describe_topic(cluster, topic), REPLICAS, ConfigSource.TOPIC)
        except KafkaError as error:
            if error.code is not ErrorCode.unknown_topic_or_partition:
                raise
            continue
        if found:
            changes.alter_topic_configs(topic, found)
            limited.append(topic)
    return brokers, limited


def _settings_of(cluster: ClusterClient, broker: int) -> Settings:
    try:
        return describe_broker(cluster, broker)
    except SparklogError:  # the broker just died; the next ``verify`` removes its throttle
        return {}


def _set_by(settings: Settings, names: Iterable[str], source: ConfigSource) -> dict[str, None]:
    """A change that deletes those of ``names`` whose value is from ``source``."""
    return {name: None for name in names if name in settings and settings[name].source is source}


def remove_and_tell(cluster: ClusterClient, topics: set[str]) -> None:
    brokers, limited = remove_throttle(cluster, topics)
    if brokers or limited:
        say(f"the throttle was removed from brokers {brokers} and topics {limited}")
