"""The throttles of operations: settings that brokers are sent while an operation runs, and that are stored
nowhere.

They are the settings of Kafka's throttle (KIP-73): rates of brokers, and replicas of topics. So a throttle
ends with its operation, whoever is the controller then. Of several the lowest rate counts, also beside one
that Kafka's own tools have set, which stays as it is.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sparklog.core.controller.operations.moves import moves_of
from sparklog.core.controller.state.image import ClusterImage, TopicImage
from sparklog.model.ids import TopicPartition

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
EVERY_REPLICA: Final = "*"


def rate_of(image: ClusterImage) -> int:
    """Bytes a second; 0 for no limit."""
    rates = [one.throttle for one in image.operations.values() if one.is_running and one.throttle]
    return min(rates, default=0)


def throttled_moves(image: ClusterImage) -> frozenset[TopicPartition]:
    """Those of operations that have a throttle."""
    return frozenset(
        partition
        for operation in image.operations.values()
        if operation.is_running and operation.throttle
        for partition in moves_of(image, operation)
    )


def broker_configs(image: ClusterImage, own: Mapping[str, str]) -> Mapping[str, str]:
    """The settings ``own`` of a broker, with the rate of operations where that is lower."""
    rate = rate_of(image)
    if not rate:
        return own
    lower = {name: str(min(rate, _rate(image, own, name))) for name in RATES}
    return {**own, **lower}


def _rate(image: ClusterImage, own: Mapping[str, str], name: str) -> int:
    stored = own.get(name) or image.default_configs.get(name)
    return int(stored) if stored else image.static_config.get_int(name)


def topic_configs(
    image: ClusterImage, topic: TopicImage, throttled: Iterable[TopicPartition]
) -> Mapping[str, str]:
    """The settings of a topic, with the replicas of ``throttled`` moves: who sends, and who fetches."""
    leaders: list[str] = []
    followers: list[str] = []
    for partition in sorted(one for one in throttled if one.topic == topic.name):
        assignment = image.assignment_of(partition)
        for replica in assignment.replicas:
            side = followers if replica in assignment.adding else leaders
            side.append(f"{partition.partition}:{replica}")
    if not followers:
        return topic.configs
    return {
        **topic.configs,
        LEADERS: _with(topic.configs.get(LEADERS, ""), leaders),
        FOLLOWERS: _with(topic.configs.get(FOLLOWERS, ""), followers),
    }


def _with(stored: str, more: list[str]) -> str:
    listed = [one.strip() for one in stored.split(",") if one.strip()]
    return stored if EVERY_REPLICA in listed else ",".join(dict.fromkeys((*listed, *more)))
