"""Whether the consumer group comes to rest once everything is mended, as brokers describe it.

What its members saw and committed is for the checker to judge (rules L12 to L14).
"""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from chaos.access import Access

ASK_S = 5.0
_POLL_S = 0.3


def wait_for_rest(
    access: Access, group: str, members: int, topics: Mapping[str, int], timeout_s: float
) -> str | None:
    """Until the group is stable, has ``members`` members, and one of them for each partition.

    What is still wrong after ``timeout_s``, in words; None if nothing is.
    """
    admin = AdminClient({**access.confluent(), "log_level": 0, "error_cb": lambda error: None})
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            described = admin.describe_consumer_groups([group], request_timeout=ASK_S)[group].result(
                ASK_S * 2
            )
            wrong = unrest(described, members, topics)
        except (KafkaException, TimeoutError) as error:
            wrong = f"it cannot be described: {error}"
        if wrong is None or time.monotonic() > deadline:
            return wrong
        time.sleep(_POLL_S)


def unrest(described: Any, members: int, topics: Mapping[str, int]) -> str | None:
    """Why the described group is not at rest."""
    if described.state != ConsumerGroupState.STABLE:
        return f"its state is {described.state.name}"
    if len(described.members) != members:
        return f"it has {len(described.members)} members, and {members} run"
    owners = Counter(
        (place.topic, place.partition)
        for member in described.members
        for place in member.assignment.topic_partitions
    )
    for topic, partitions in topics.items():
        for partition in range(partitions):
            if owners[topic, partition] != 1:
                return f"{topic}/{partition} has {owners[topic, partition]} owners"
    return None
