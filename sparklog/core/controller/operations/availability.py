"""Whether a broker may stop: no partition may fall below its minimum of replicas in sync by that.

A member of an ISR counts only if it is alive and stays: not one that is shutting down, whose wish is another
than to serve, or whose log of the partition has failed.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from sparklog.core.controller.events.cluster_event import count_of
from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, TopicPartition

NAMED_MAX: Final = 3
"""How many partitions a text names."""


def stays(image: ClusterImage, broker: BrokerId) -> bool:
    """Whether it is alive and nothing is about to stop it."""
    is_stopping = broker in image.shutting_down
    return broker in image.brokers and not is_stopping and image.wish(broker) is Wish.serving


def stays_in_sync(image: ClusterImage, partition: TopicPartition, state: PartitionState) -> list[BrokerId]:
    return [
        one for one in state.isr if stays(image, one) and partition not in image.offline.get(one, frozenset())
    ]


def led_or_in_sync(
    image: ClusterImage, broker: BrokerId
) -> Iterator[tuple[TopicPartition, PartitionState, int]]:
    """The partitions that have this live broker in their ISR, with their minimum."""
    if broker not in image.brokers or not image.counts.in_sync[broker]:
        return
    for partition, state in image.partitions():
        if state is not None and broker in state.isr:
            yield partition, state, image.topics[partition.topic].rules.min_isr(state.replicas)


def never_available(
    image: ClusterImage, broker: BrokerId, together: Collection[BrokerId]
) -> list[TopicPartition]:
    """The partitions of this broker that cannot have their minimum while the brokers ``together`` with it,
    and those whose wish is not to serve, are stopped.
    """
    return [
        partition
        for partition, state, minimum in led_or_in_sync(image, broker)
        if len(_may_stay(image, state, {broker, *together})) < minimum
    ]


def _may_stay(image: ClusterImage, state: PartitionState, stopped: Collection[BrokerId]) -> list[BrokerId]:
    return [one for one in state.replicas if one not in stopped and image.wish(one) is Wish.serving]


def short_without(
    image: ClusterImage, broker: BrokerId, together: Collection[BrokerId], *, accepts_unavailable: bool
) -> tuple[Wait, ...]:
    """What a stop of this broker has to wait for. With ``accepts_unavailable`` not for partitions that are
    ``never_available``.
    """
    short = [
        (partition, len(staying), minimum)
        for partition, state, minimum in led_or_in_sync(image, broker)
        if len(staying := [one for one in stays_in_sync(image, partition, state) if one != broker]) < minimum
        and not (accepts_unavailable and len(_may_stay(image, state, {broker, *together})) < minimum)
    ]
    if not short:
        return ()
    named = ", ".join(
        f"{partition} (minimum {minimum}, without broker {broker} {count} in sync)"
        for partition, count, minimum in short[:NAMED_MAX]
    )
    are = count_of(len(short), "partition")
    words = f"{are} would fall below the minimum of replicas in sync: {named}{_more(len(short))}"
    return (Wait(words, topics_of([partition for partition, _, _ in short])),)


def lagging(
    image: ClusterImage, ignored: Collection[BrokerId]
) -> Iterator[tuple[TopicPartition, list[BrokerId]]]:
    """The partitions with replicas out of sync that should be in sync, and these: not those that are being
    added, nor those on brokers that are ``ignored`` or whose wish is another than to serve.
    """
    if not image.counts.under_replicated:
        return
    for partition, state in image.partitions():
        replicas = image.replicas_of(partition) if state is None else state.replicas
        in_sync = () if state is None else state.isr
        if len(in_sync) == len(replicas):
            continue
        adding = () if state is None else state.adding
        missing = [
            one
            for one in replicas
            if one not in in_sync
            and one not in adding
            and one not in ignored
            and image.wish(one) is Wish.serving
        ]
        if missing:
            yield partition, missing


def not_full_again(
    image: ClusterImage, operation: Operation, ignored: Collection[BrokerId]
) -> tuple[Wait, ...]:
    """What a restart waits for: ISRs that were full when it began, and are not."""
    before, ignored = set(operation.lagging), {*operation.away, *ignored}
    found = [(one, missing) for one, missing in lagging(image, ignored) if one not in before]
    if not found:
        return ()
    brokers = sorted({broker for _, missing in found for broker in missing})
    names = ", ".join(str(one) for one, _ in found[:NAMED_MAX])
    who = f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"
    words = f"{who} to be in sync again in {count_of(len(found), 'partition')}: {names}{_more(len(found))}"
    return (Wait(words, topics_of([one for one, _ in found])),)


def named(partitions: Sequence[TopicPartition]) -> str:
    """The first few, and how many there are."""
    return f"{', '.join(map(str, partitions[:NAMED_MAX]))}{_more(len(partitions))}"


def _more(count: int) -> str:
    return f" and {count - NAMED_MAX} more" if count > NAMED_MAX else ""


def topics_of(partitions: Sequence[TopicPartition]) -> tuple[str, ...]:
    """The topics of those that a text names."""
    return tuple(dict.fromkeys(partition.topic for partition in partitions[:NAMED_MAX]))
