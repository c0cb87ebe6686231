"""Pipelines of confluent-kafka whose partitions move during a transaction: each record counts once (KIP-447).

Each instance has a transactional id of its own, so that nothing but the group's generation fences a zombie.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sparklog.client.coordinator import Coordinator
from sparklog.model.errors import ErrorCode
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.clients.pipeline_process import PipelineProcess, RefusedError
from tests.waiting import until

pytestmark = pytest.mark.integration

EACH = 20
LONG_MS = 60_000
SHORT_MS = 3_000
"""Of a transaction. The session of its paused member ends before."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    settings = {"group.min.session.timeout.ms": "500"}
    with InProcessCluster(tmp_path_factory.mktemp("pipelines"), settings=settings) as cluster:
        yield cluster


class Room:
    """A group with its source, which has ``EACH`` records in a partition, and its sink."""

    def __init__(self, cluster: InProcessCluster, partitions: int) -> None:
        self.cluster, self.group = cluster, f"pipeline-{next(_numbers)}"
        self.source, self.sink = f"{self.group}-in", f"{self.group}-out"
        cluster.create_topic(self.source, partitions=partitions)
        cluster.create_topic(self.sink)
        for partition in range(partitions):
            cluster.produce(self.source, self.values(partition), partition=partition)
        self.partitions = partitions

    @staticmethod
    def values(partition: int) -> list[str]:
        return [f"{partition}:{number}" for number in range(EACH)]

    @property
    def all_values(self) -> list[str]:
        return sorted(value for partition in range(self.partitions) for value in self.values(partition))

    def written(self, at_least: int) -> list[str]:
        """What readers of committed records find in the sink, once it is so much."""
        return sorted(record.value.decode() for record in self.cluster.consume(self.sink, at_least=at_least))

    def position(self, partition: int = 0, *, require_stable: bool = True) -> int | ErrorCode:
        """What OffsetFetch answers about the group: -1 if nothing is committed."""
        topic = OffsetFetchRequestTopics(name=self.source, partition_indexes=[partition])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[topic])],
            require_stable=require_stable,
        )
        answer = Coordinator(self.cluster.client, self.group).call(request, lambda answer: ErrorCode.none)
        found = answer.groups[0].topics[0].partitions[0]
        return found.error_code if found.error_code is not ErrorCode.none else found.committed_offset


@pytest.fixture
def room(cluster: InProcessCluster) -> Room:
    return Room(cluster, partitions=1)


@pytest.fixture
def instance(room: Room) -> Iterator[Callable[..., PipelineProcess]]:
    """Starts another instance of the room's pipeline."""
    with ExitStack() as closing:

        def start(me: str, *, timeout_ms: int = LONG_MS, of: Room = room) -> PipelineProcess:
            servers = of.cluster.bootstrap_servers
            process = PipelineProcess(servers, of.group, of.source, of.sink, me, timeout_ms)
            closing.enter_context(process)("start")
            return process

        yield start


def take_all(pipeline: PipelineProcess, wanted: list[str]) -> None:
    """Until one poll has brought all of them: they are in one transaction then."""
    found = until(lambda: pipeline("poll"), f"{wanted}")
    assert found == wanted


def finish(pipeline: PipelineProcess) -> None:
    for step in ("write", "offsets", "commit"):
        pipeline(step)


def refusal(pipeline: PipelineProcess, step: str) -> str:
    with pytest.raises(RefusedError) as refused:
        pipeline(step)
    return str(refused.value)


@pytest.mark.scenario(
    "S12", "Transactional copies by groups that rebalance: exactly one committed copy (KIP-447)."
)
def test_a_zombie_whose_partition_has_moved_commits_nothing(room, instance):
    zombie = instance("zombie")
    take_all(zombie, room.values(0))
    zombie("write")
    zombie.pause()
    successor = instance("successor")
    take_all(successor, room.values(0))
    finish(successor)
    zombie.resume()
    assert refusal(zombie, "offsets") == "UNKNOWN_MEMBER_ID"
    assert refusal(zombie, "commit") == "UNKNOWN_MEMBER_ID"  # by the client itself: only an abort is left
    zombie("abort")
    assert room.written(EACH) == room.all_values
    assert room.position() == EACH


@pytest.mark.scenario("S12")
def test_a_member_of_the_generation_before_commits_nothing(cluster, instance):
    room = Room(cluster, partitions=2)
    first = instance("first", of=room)
    seen: list[str] = []
    until(lambda: seen.extend(first("poll")) or sorted(seen) == room.all_values, lambda: str(seen))
    first("write")
    second = instance("second", of=room)
    until(lambda: second.begin("follow") or (first("follow"), second.finish()) == (1, 1))
    assert refusal(first, "offsets") == "ILLEGAL_GENERATION"
    first("abort")
    cluster.produce(room.sink, ["end"])
    assert room.written(1) == ["end"]
    assert [room.position(partition) for partition in range(2)] == [-1, -1]


@pytest.mark.scenario("S12")
@pytest.mark.parametrize("is_resumed", [True, False], ids=["committed", "timed out"])
def test_who_takes_a_partition_over_waits_for_the_offsets_that_are_pending(room, instance, is_resumed):
    zombie = instance("zombie", timeout_ms=LONG_MS if is_resumed else SHORT_MS)
    take_all(zombie, room.values(0))
    zombie("write")
    zombie("offsets")
    zombie.pause()
    assert room.position() is ErrorCode.unstable_offset_commit
    assert room.position(require_stable=False) == -1
    successor = instance("successor")
    if is_resumed:
        until(lambda: successor("follow"), "the successor owns the partition")
        assert successor("poll") == []
        assert room.position() is ErrorCode.unstable_offset_commit
        zombie.resume()
        zombie("commit")
        room.cluster.produce(room.source, ["more"], partition=0)
        take_all(successor, ["more"])
        finish(successor)
        assert room.written(EACH + 1) == [*room.all_values, "more"]
    else:
        take_all(successor, room.values(0))
        finish(successor)
        zombie.resume()
        assert refusal(zombie, "commit") == "_FENCED"
        assert room.written(EACH) == room.all_values
    assert room.position() == EACH + is_resumed
