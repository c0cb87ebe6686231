"""Members of groups against real brokers: what is shared, kept, and read again."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.group.committed_offsets import commit_offsets, fetch_committed
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.group.group_consumer import GroupConsumer, OffsetReset, OnAssignment
from sparklog.client.group.settings import MemberSettings
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

_numbers = itertools.count()
POLL_MS = 50
POLLS_MAX = 1_200


class World:
    """A topic and a group of its own, in the session's cluster."""

    def __init__(self, cluster: InProcessCluster, closing: ExitStack) -> None:
        self.cluster = cluster
        self.topic = f"members-{next(_numbers)}"
        self.group = f"group-of-{self.topic}"
        self._closing = closing
        cluster.create_topic(self.topic, partitions=4)

    def partitions(self, *numbers: int) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(self.topic, number) for number in numbers)

    def produce(self, *values: str, partition: int = 0) -> None:
        self.cluster.produce(self.topic, values, partition=partition)

    def member(
        self,
        *,
        reset: OffsetReset = OffsetReset.EARLIEST,
        on_assignment: OnAssignment = lambda _: None,
        **settings: Any,
    ) -> GroupConsumer:
        fields = {"group_id": self.group, "topics": frozenset({self.topic}), "heartbeat_interval_ms": 100}
        return self._closing.enter_context(
            GroupConsumer(
                self.client(),
                MemberSettings(**{**fields, **settings}),
                offset_reset=reset,
                on_assignment=on_assignment,
            )
        )

    def client(self) -> ClusterClient:
        return self._closing.enter_context(ClusterClient(self.cluster.bootstrap_servers))

    @property
    def committed(self) -> dict[int, int]:
        coordinator = GroupAdmin(self.cluster.client).coordinator(self.group)
        return {one.partition: found.offset for one, found in fetch_committed(coordinator).items()}

    @property
    def generation_members(self) -> list[str]:
        return sorted(one.member_id for one in GroupAdmin(self.cluster.client).describe(self.group).members)


@pytest.fixture
def world(cluster: InProcessCluster) -> Iterator[World]:
    with ExitStack() as closing:
        yield World(cluster, closing)


def poll_once(*members: GroupConsumer) -> list[tuple[int, str]]:
    """What one poll of each member returns, as partition and value."""
    return [
        (topic_partition.partition, value.decode())
        for member in members
        for topic_partition, rows in member.poll(POLL_MS)
        for value in rows.column("value").to_pylist()
    ]


def poll_until(condition: Callable[[], bool], *members: GroupConsumer) -> None:
    """Poll the members in turn until the condition holds; no record may come."""
    for _ in range(POLLS_MAX):
        if condition():
            return
        assert poll_once(*members) == []
    raise AssertionError(f"waited in vain; obstacles: {[member.obstacle for member in members]}")


def poll_records(count: int, *members: GroupConsumer) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for _ in range(POLLS_MAX):
        if len(found) >= count:
            return found
        found += poll_once(*members)
    raise AssertionError(f"only {found} came; obstacles: {[member.obstacle for member in members]}")


def test_members_share_the_partitions_and_one_takes_over_what_another_leaves(world: World) -> None:
    seen: list[frozenset[TopicPartition]] = []
    first = world.member(on_assignment=seen.append)
    poll_until(lambda: len(first.assignment) == 4, first)
    second = world.member()
    poll_until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
    assert seen == [world.partitions(0, 1, 2, 3), first.assignment]
    assert first.assignment | second.assignment == world.partitions(0, 1, 2, 3)
    for partition in range(4):
        world.produce(f"{partition}a", f"{partition}b", partition=partition)
    read = poll_records(8, first, second)
    assert sorted(read) == [(number, f"{number}{half}") for number in range(4) for half in "ab"]
    first.close()
    assert world.committed.items() >= {one.partition: 2 for one in first.assignment}.items()
    poll_until(lambda: second.assignment == world.partitions(0, 1, 2, 3), second)
    second.close()
    assert world.committed == dict.fromkeys(range(4), 2)
    assert world.generation_members == []


def test_a_cooperative_member_reads_on_while_another_joins(world: World) -> None:
    seen: list[frozenset[TopicPartition]] = []
    settings = {"assignors": ("cooperative-sticky",)}
    first = world.member(**settings, on_assignment=seen.append)
    poll_until(lambda: len(first.assignment) == 4, first)
    second = world.member(**settings)
    poll_until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
    assert seen == [world.partitions(0, 1, 2, 3), first.assignment]


def test_records_that_were_returned_but_not_processed_are_read_again(world: World) -> None:
    def fail_to_process() -> None:
        with world.member() as failing:
            assert poll_records(2, failing) == [(0, "one"), (0, "two")]
            raise ZeroDivisionError

    world.produce("one", "two")
    with pytest.raises(ZeroDivisionError):
        fail_to_process()
    second = world.member()
    assert poll_records(2, second) == [(0, "one"), (0, "two")]


def test_a_member_that_seeks_back_leaves_the_rest_to_the_next_one(world: World) -> None:
    world.produce("one", "two", "three")
    first = world.member()
    poll_records(3, first)
    first.seek(TopicPartition(world.topic, 0), 1)
    first.close()
    assert world.committed[0] == 1
    assert poll_records(2, world.member()) == [(0, "two"), (0, "three")]


@pytest.mark.parametrize(("reset", "expected"), [(OffsetReset.EARLIEST, "old"), (OffsetReset.LATEST, "new")])
def test_without_a_committed_offset_the_reset_decides(
    reset: OffsetReset, expected: str, world: World
) -> None:
    world.produce("old")
    member = world.member(reset=reset)
    if reset is OffsetReset.LATEST:
        poll_until(lambda: len(member.assignment) == 4, member)
        world.produce("new")
    assert poll_records(1, member)[0] == (0, expected)


def test_a_committed_offset_that_the_log_lacks_is_reset_as_well(world: World) -> None:
    world.produce("one")
    coordinator = GroupAdmin(world.cluster.client).coordinator(world.group)
    commit_offsets(coordinator, {TopicPartition(world.topic, 0): 99})
    assert poll_records(1, world.member()) == [(0, "one")]


def test_a_static_member_returns_without_a_rebalance(world: World) -> None:
    seen: list[frozenset[TopicPartition]] = []
    first, other = world.member(group_instance_id="i"), world.member(on_assignment=seen.append)
    poll_until(lambda: len(first.assignment) == len(other.assignment) == 2, first, other)
    before, changes = first.assignment, len(seen)
    first.close()
    again = world.member(group_instance_id="i")
    poll_until(lambda: bool(again.assignment), again, other)
    assert again.assignment == before
    for _ in range(10):  # a second, and ten heartbeats of the other member
        poll_once(other)
    assert len(seen) == changes


def test_the_twin_of_a_static_member_ends_the_older_one(world: World) -> None:
    older = world.member(group_instance_id="i")
    poll_until(lambda: len(older.assignment) == 4, older)
    younger = world.member(group_instance_id="i")
    with pytest.raises(KafkaError, match="another member has joined with the same") as raised:
        poll_until(lambda: False, older, younger)
    assert raised.value.code is ErrorCode.fenced_instance_id
    poll_until(lambda: len(younger.assignment) == 4, younger)


def test_members_without_a_common_assignor_are_refused(world: World) -> None:
    first = world.member(assignors=("range",))
    poll_until(lambda: len(first.assignment) == 4, first)
    stranger = world.member(assignors=("roundrobin",))
    with pytest.raises(KafkaError, match="no assignor that this one knows"):
        poll_until(lambda: False, stranger, first)


def test_a_group_sees_new_partitions_of_its_topic(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparklog.client.group.membership.COUNTS_MAX_AGE_MS", 200)
    member = world.member()
    poll_until(lambda: len(member.assignment) == 4, member)
    ClusterChanges(world.cluster.client).create_partitions(world.topic, 6)
    poll_until(lambda: len(member.assignment) == 6, member)


def test_the_death_of_the_coordinator_moves_no_partition(tmp_path: Path) -> None:
    """Also, what is committed later is found at the next coordinator."""
    settings = {"offsets.topic.num.partitions": "2"}
    with InProcessCluster(tmp_path, settings=settings) as cluster, ExitStack() as closing:
        world = World(cluster, closing)
        seen: list[frozenset[TopicPartition]] = []
        member = world.member(on_assignment=seen.append)
        world.produce("before")
        assert poll_records(1, member) == [(0, "before")]
        first = GroupAdmin(cluster.client).describe(world.group).coordinator.id
        cluster.kill(first)
        cluster.wait_for_leader(world.topic, other_than=first)
        world.produce("after")
        assert poll_records(1, member) == [(0, "after")]
        member.close()
        assert seen == [world.partitions(0, 1, 2, 3)]
        assert GroupAdmin(cluster.client).describe(world.group).coordinator.id != first
        assert world.committed[0] == 2
