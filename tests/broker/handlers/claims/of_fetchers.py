"""Claims of fetch sessions, of replicas and of leader epochs."""

import itertools

from sparklog.client.changes import ClusterChanges
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.network.dialing.connection import Connection
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest
from sparklog.wire.messages.data.list_offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from sparklog.wire.messages.data.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sparklog.wire.messages.writes.describe_visibility import (
    AskedPartition,
    AskedTopic,
    DescribeVisibilityRequest,
)
from tests.broker.handlers.transactions.conftest import TIMEOUT_MS
from tests.waiting import until

NONE = ErrorCode.none
NEVER_GIVEN = 2_000_000_001
NO_BROKER = 77
numbers = itertools.count()


def fetched(place, **fields):
    """A request for the beginning of a partition, by name."""
    partition = FetchPartition(
        partition=place.partition,
        current_leader_epoch=fields.pop("current_leader_epoch", -1),
        fetch_offset=fields.pop("offset", 0),
        partition_max_bytes=1_000_000,
    )
    topics = [FetchTopic(topic=place.topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=0, **{"topics": topics, **fields})


class OpenSession:
    """The owner has a fetch session in its third epoch; the claimant comes over another connection."""

    def __init__(self, cluster, wire):
        self.place = TopicPartition(f"session-{next(numbers)}", 0)
        cluster.create_topic(self.place.topic)
        cluster.produce(self.place.topic, [b"a"])
        self.leader = cluster.wait_for_leader(*self.place)
        node = cluster.brokers[self.leader].node
        self.owners = wire.to(self.leader)
        self.others = wire.connections["another"] = Connection.open(
            node.host, node.port, client_id="another", timeout_ms=TIMEOUT_MS
        )
        self.session, self.epoch = self.opened(self.owners), 1
        self.fetch()
        self.old_session = self.opened(self.others)
        ended = FetchRequest(session_id=self.old_session, session_epoch=-1, max_wait_ms=0)
        assert self.call(self.others, ended).error_code is NONE

    @staticmethod
    def call(connection, request):
        return connection.call(request, version=12, timeout_ms=TIMEOUT_MS)

    def opened(self, connection):
        answer = self.call(connection, fetched(self.place, session_epoch=0))
        assert answer.session_id > 0
        return answer.session_id

    def fetch(self):
        request = FetchRequest(session_id=self.session, session_epoch=self.epoch, max_wait_ms=0)
        assert self.call(self.owners, request).error_code is NONE
        self.epoch += 1

    def fetch_session(self, claim):
        session_id, epoch = {
            "a session that was never given": (NEVER_GIVEN, 1),
            "an epoch that was never given": (self.session, self.epoch + 7),
            "an old session": (self.old_session, 1),
            "an old epoch": (self.session, self.epoch - 1),
            "the owner as a whole": (self.session, self.epoch),
        }[claim]
        request = FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0)
        return self.call(self.others, request).error_code

    def goes_on(self):
        self.fetch()


class ReplicatedPartition:
    """The owner is the follower of a partition, which its leader counts as in sync."""

    def __init__(self, cluster, wire):
        self.cluster, self.wire = cluster, wire
        self.place = TopicPartition(f"replicated-{next(numbers)}", 0)
        cluster.create_topic(self.place.topic)
        cluster.produce(self.place.topic, [b"a"])
        cluster.wait_for_isr(self.place.topic, 2)
        self.leader = cluster.wait_for_leader(*self.place)
        self.follower = 3 - self.leader

    def claimed(self, claim):
        epoch = self.cluster.brokers[self.follower].node.epoch
        return {
            "a replica that was never given": (NO_BROKER, epoch),
            "an old epoch": (self.follower, epoch - 1),
            "the owner as a whole": (self.follower, epoch),
        }[claim]

    def fetch_as_replica(self, claim):
        replica_id, replica_epoch = self.claimed(claim)
        topic = self.cluster.client.metadata([self.place.topic]).topics[self.place.topic]
        request = fetched(self.place, offset=1, replica_id=replica_id, replica_epoch=replica_epoch)
        request.topics[0].topic_id = topic.topic_id
        return self.wire.call(self.leader, request).responses[0].partitions[0].error_code

    def list_as_replica(self, claim):
        asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
        topics = [ListOffsetsTopic(name=self.place.topic, partitions=[asked])]
        request = ListOffsetsRequest(replica_id=self.claimed(claim)[0], topics=topics)
        return self.wire.call(self.leader, request).topics[0].partitions[0].error_code

    def epoch_end_as_replica(self, claim):
        topics = [
            OffsetForLeaderTopic(
                topic=self.place.topic, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
        ]
        request = OffsetForLeaderEpochRequest(replica_id=self.claimed(claim)[0], topics=topics)
        return self.wire.call(self.leader, request).topics[0].partitions[0].error_code

    def goes_on(self):
        self.cluster.produce(self.place.topic, [b"b"])
        assert [one.value for one in self.cluster.consume(self.place.topic, at_least=2)] == [b"a", b"b"]
        partition = self.cluster.brokers[self.follower].body.replicas.get(self.place)
        until(lambda: partition.high_watermark == 2)
        assert self.cluster.brokers[self.leader].body.replicas.get(self.place).is_in_sync(self.follower)


class SessionOfAFollower(ReplicatedPartition):
    """The owner is a follower, and has a session in its second epoch, which fetches in the lean form."""

    def __init__(self, cluster, wire):
        super().__init__(cluster, wire)
        self.broker_epoch = cluster.brokers[self.follower].node.epoch
        self.consumers = self.opened()
        self.session = self.opened(replica_id=self.follower, replica_epoch=self.broker_epoch)
        assert self.lean(self.session, 1) is NONE

    def opened(self, **replica):
        topic = self.cluster.client.metadata([self.place.topic]).topics[self.place.topic]
        request = fetched(self.place, offset=1, session_epoch=0, **replica)
        request.topics[0].topic_id = topic.topic_id
        answer = self.wire.call(self.leader, request)
        assert answer.session_id > 0
        return answer.session_id

    def lean(self, session_id, epoch):
        request = LeanFetchRequest(
            session_id=session_id, session_epoch=epoch, broker_epoch=self.broker_epoch, max_wait_ms=0
        )
        return self.wire.call(self.leader, request).error_code

    def lean_fetch(self, claim):
        return self.lean(
            *{
                "a session that was never given": (NEVER_GIVEN, 1),
                "a session of a consumer": (self.consumers, 1),
                "an epoch that was never given": (self.session, 9),
                "an old epoch": (self.session, 1),
                "the owner as a whole": (self.session, 2),
            }[claim]
        )

    def goes_on(self):
        super().goes_on()
        assert self.lean(self.session, 2) is NONE


class MovedPartition:
    """A partition in its second leader epoch at least: it has moved to another broker."""

    def __init__(self, cluster, wire):
        self.wire, self.place = wire, TopicPartition(f"moved-{next(numbers)}", 0)
        cluster.create_topic(self.place.topic, replication_factor=1)
        cluster.produce(self.place.topic, [b"a"])
        before = cluster.wait_for_leader(*self.place)
        assert ClusterChanges(cluster.client).reassign({self.place: [3 - before]}) == {}
        self.leader = 3 - before
        self.epoch = until(lambda: self.epoch_of_the_last_step(cluster))
        self.partition = cluster.brokers[self.leader].body.replicas.get(self.place)
        assert self.epoch > 0

    def epoch_of_the_last_step(self, cluster):
        """The leader epoch in which the former replica is gone; None before."""
        (told,) = cluster.partitions(self.place.topic)
        partition = cluster.brokers[self.leader].body.replicas.get(self.place)
        is_over = told.replicas == told.isr == (self.leader,) and partition is not None
        return told.leader_epoch if is_over and told.leader_epoch == partition.leader_epoch else None

    def claimed(self, claim):
        ages = {"an epoch that was never given": 1, "an old epoch": -1, "the present one": 0}
        return self.epoch + ages[claim]

    def fetch(self, claim):
        request = fetched(self.place, current_leader_epoch=self.claimed(claim))
        return self.wire.call(self.leader, request, 12).responses[0].partitions[0].error_code

    def list_offsets(self, claim):
        asked = ListOffsetsPartition(
            partition_index=0, timestamp=LATEST_TIMESTAMP, current_leader_epoch=self.claimed(claim)
        )
        topics = [ListOffsetsTopic(name=self.place.topic, partitions=[asked])]
        answer = self.wire.call(self.leader, ListOffsetsRequest(topics=topics))
        return answer.topics[0].partitions[0].error_code

    def epoch_end(self, claim):
        asked = OffsetForLeaderPartition(
            partition=0, leader_epoch=0, current_leader_epoch=self.claimed(claim)
        )
        topics = [OffsetForLeaderTopic(topic=self.place.topic, partitions=[asked])]
        answer = self.wire.call(self.leader, OffsetForLeaderEpochRequest(topics=topics))
        return answer.topics[0].partitions[0].error_code

    def visibility(self, claim):
        asked = AskedPartition(partition_index=0, current_leader_epoch=self.claimed(claim), since_offset=1)
        topics = [AskedTopic(name=self.place.topic, partitions=[asked])]
        answer = self.wire.call(self.leader, DescribeVisibilityRequest(topics=topics))
        return answer.topics[0].partitions[0].error_code

    def goes_on(self):
        asking = (self.fetch, self.list_offsets, self.epoch_end, self.visibility)
        assert {ask("the present one") for ask in asking} == {NONE}
        assert self.partition.leader_epoch == self.epoch
