"""Questions about groups, and their deletion: asked of each broker, or of each group's coordinator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator, ask_when_ready
from sparklog.client.group.subscriptions import assignment_of, subscribed_topics
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.wire.consumer_protocol import PROTOCOL_TYPE
from sparklog.wire.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from sparklog.wire.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from sparklog.wire.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse

DEAD = "Dead"
"""The state of a group that does not exist."""
EMPTY = "Empty"
"""The state of a group that has committed offsets, and no members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as its coordinator lists it."""

    group_id: str
    protocol_type: str
    """``consumer`` for groups of consumers; empty for a group that has only committed offsets."""
    group_state: str
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: frozenset[str]
    """The topics that the member subscribes to; empty for members other than consumers."""
    partitions: tuple[TopicPartition, ...]
    """Its assignment, sorted; empty while the group rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group; ``group_state`` is DEAD if there is none."""

    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    """The assignor that the members have agreed on; empty without members."""
    coordinator: Node
    members: tuple[MemberDescription, ...]

    def owners(self) -> dict[TopicPartition, MemberDescription]:
        """The member that each assigned partition belongs to."""
        return {one: member for member in self.members for one in member.partitions}


class GroupAdmin:
    """Stateless over a ``ClusterClient``; as safe to share between threads as that is."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    def coordinator(self, group_id: str) -> Coordinator:
        """Calls to the group's coordinator, as ``committed_offsets`` makes them."""
        return Coordinator(self._cluster, group_id)

    def list_groups(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """The groups of all live brokers in these states (none given: in all), sorted by id.

        KafkaError or OSError if a broker does not answer, because the list would lack its groups.
        """
        request = ListGroupsRequest(states_filter=list(states))
        found: dict[str, GroupListing] = {}
        brokers = self._cluster.metadata([], max_age_ms=0).brokers
        for broker_id in sorted(brokers):
            response: ListGroupsResponse = ask_when_ready(
                self._cluster, brokers[broker_id], request, lambda answer: answer.error_code, "groups"
            )
            for group in response.groups:
                found[group.group_id] = GroupListing(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.group_state,
                    coordinator=broker_id,
                )
        return [found[group_id] for group_id in sorted(found)]

    def describe(self, group_id: str) -> GroupDescription:
        """The group's state and members; one that does not exist is described as DEAD."""
        coordinator = self.coordinator(group_id)
        response: DescribeGroupsResponse = coordinator.call(
            DescribeGroupsRequest(groups=[group_id]), lambda answer: answer.groups[0].error_code
        )
        (group,) = response.groups
        if group.error_code is not ErrorCode.none:
            raise KafkaError(group.error_code, f"group {group_id!r} cannot be described")
        return _description(group, coordinator.find())

    def delete(self, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """Delete groups with their offsets; the outcome of each, ``none`` if it is deleted."""
        return {group_id: self._delete_one(group_id) for group_id in group_ids}

    def _delete_one(self, group_id: str) -> ErrorCode:
        response: DeleteGroupsResponse = self.coordinator(group_id).call(
            DeleteGroupsRequest(groups_names=[group_id]), lambda answer: answer.results[0].error_code
        )
        return response.results[0].error_code


def _description(group: DescribedGroup, coordinator: Node) -> GroupDescription:
    is_consumers = group.protocol_type == PROTOCOL_TYPE
    return GroupDescription(
        group_id=group.group_id,
        group_state=group.group_state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_member(member, is_consumer=is_consumers) for member in group.members),
    )


def _member(member: DescribedGroupMember, *, is_consumer: bool) -> MemberDescription:
    partitions = assignment_of(member.member_assignment) if is_consumer else frozenset()
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=subscribed_topics(member.member_metadata) if is_consumer else frozenset(),
        partitions=tuple(sorted(partitions)),
    )
