"""What a member tells the leader, and what the leader assigns, as the group's members exchange them.

The bytes are those of Kafka's consumers (``wire.consumer_protocol``). User data is the assignor's own: with
``cooperative-sticky`` it is the generation in which the member got its partitions, a big-endian int32, as
leaders expect that do not know the generation of subscriptions of version 2.
"""

import logging
import struct
from collections.abc import Iterable
from typing import Final

from sparklog.client.group.assignors.assignor import Subscriber
from sparklog.client.group.assignors.sticky import CooperativeStickyAssignor
from sparklog.model.errors import WireError
from sparklog.model.ids import TopicPartition
from sparklog.wire.consumer_protocol import (
    NO_GENERATION,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from sparklog.wire.messages.groups.join_group import JoinGroupResponseMember

logger: Final = logging.getLogger(__name__)

_GENERATION: Final = struct.Struct(">i")


def subscription_bytes(
    assignor: str, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int
) -> bytes:
    """A member's metadata for one assignor."""
    user_data = _GENERATION.pack(generation) if assignor == CooperativeStickyAssignor.name else None
    return encode_subscription(
        Subscription(tuple(topics), user_data, tuple(owned), generation if owned else NO_GENERATION)
    )


def subscriber_of(member: JoinGroupResponseMember, assignor: str) -> Subscriber:
    """A member as assignors see it. One whose metadata is malformed gets no partitions."""
    try:
        subscription = decode_subscription(member.metadata)
    except WireError as error:
        logger.warning("member %s gets no partitions: %s", member.member_id, error)
        return Subscriber(member.member_id, frozenset(), member.group_instance_id)
    generation = subscription.generation_id
    user_data = subscription.user_data or b""
    if (
        generation == NO_GENERATION
        and assignor == CooperativeStickyAssignor.name
        and len(user_data) == _GENERATION.size
    ):
        (generation,) = _GENERATION.unpack(user_data)
    return Subscriber(
        member.member_id,
        frozenset(subscription.topics),
        member.group_instance_id,
        frozenset(subscription.owned),
        generation,
    )


def subscribed_topics(metadata: bytes | memoryview) -> frozenset[str]:
    """The topics of a member; none if its metadata is not a consumer's.

    Descriptions have empty metadata while the group has not agreed on an assignor.
    """
    if not metadata:
        return frozenset()
    try:
        return frozenset(decode_subscription(metadata).topics)
    except WireError as error:
        logger.warning("the topics of a member are unknown: %s", error)
        return frozenset()


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    """One member's assignment for SyncGroup."""
    return encode_assignment(Assignment(tuple(partitions)))


def assignment_of(assignment: bytes | memoryview) -> frozenset[TopicPartition]:
    """The partitions of an assignment; none if it is not a consumer's."""
    try:
        return frozenset(decode_assignment(assignment).partitions)
    except WireError as error:
        logger.warning("an assignment is not understood and counts as empty: %s", error)
        return frozenset()
