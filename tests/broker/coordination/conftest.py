"""The coordinators of one broker over a real log and a ZooKeeper in memory, driven step by step."""

import uuid
from types import SimpleNamespace

import pytest

from sparklog.broker.coordination.coordinators import CoordinatorShards
from sparklog.broker.internal_append import InternalAppends
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.core.controller.state import znodes
from sparklog.core.group.requests import OffsetCommit, OffsetFetch, OffsetToCommit
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, NamedTopic, TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.loops import Await, Pause, go_on
from sparklog.model.settings.config import BrokerConfig
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.broker.conftest import ManualTimer, OneLogDirs

COORDINATED = TopicPartition(GROUP_OFFSETS_TOPIC, 0)
TOPIC_ID = uuid.UUID(int=9)
BYTES_MAX = 1_048_576


class NoLock:
    """A guard in a test with one thread, where waiting for it would be waiting for ever."""

    def __init__(self):
        self.is_held = False

    def acquire(self, blocking=True):
        assert not (self.is_held and blocking), "a deadlock"
        is_free, self.is_held = not self.is_held, True
        return is_free

    def release(self):
        self.is_held = False

    __enter__ = acquire

    def __exit__(self, *error):
        self.release()


class AtOnce:
    def submit(self, work):
        work()


class Loops:
    """Loops that go on when a test says so; each until it waits for something that has not happened."""

    def __init__(self):
        self.begins, self.running = {}, {}

    def start(self, name, begin):
        self.running[name] = [begin(), None]

    def go_on(self, name, *, times_out=False):
        """Let a loop run until it waits: for a signal, or for a while, unless ``times_out``."""
        loop, question = self.running[name]
        while True:
            match question:
                case None:
                    question = go_on(loop)
                case Pause(delay_ms) if delay_ms and not times_out:
                    break
                case Await(signal) if not (signal.is_given or times_out):
                    break
                case Await(signal):
                    question, times_out = go_on(loop, signal.take()), False
                case Pause(delay_ms):
                    question, times_out = go_on(loop), times_out and not delay_ms
        self.running[name][1] = question
        return question


class Coordinated:
    """Broker 1 with its coordinators. The other replica is broker 2, whose fetches a test makes."""

    def __init__(self, folder, clock, zookeeper, place=COORDINATED, **settings):
        self.folder, self.place = folder, place
        self.clock, self.timer, self.loops = clock, ManualTimer(), Loops()
        self.zookeeper = zookeeper
        config = BrokerConfig.parse({name.replace("_", "."): value for name, value in settings.items()})
        ports = Ports(clock=clock, timer=self.timer, executor=AtOnce(), new_guard=NoLock)
        nothing = SimpleNamespace(start=lambda *_: None, stop=lambda *_: None, propose=lambda *_: None)
        self.parts = ReplicaParts.compose(
            BrokerId(1), config, OneLogDirs(folder, clock), ports, fetchers=nothing, proposals=nothing
        )
        self.parts.fence.broker_epoch = BrokerEpoch(10)
        self.replicas = self.parts.table
        self.metadata = MetadataCache(NoLock())
        self.coordinators = CoordinatorShards(
            BrokerId(1),
            self.replicas,
            InternalAppends(self.replicas, self.parts.waits.appends, clock),
            self.parts.settings,
            self.parts.leadership,
            self.metadata,
            ports,
            zookeeper,
        )
        self.coordinators.start(self.loops, self.loops)
        self.pushes = 0
        self.publish(place.topic, "events")

    # The controller's part

    def publish(self, *topics, ids=None):
        """Full metadata with these topics, each of one partition."""
        self.pushes += 1
        partition = UpdateMetadataPartitionState(
            partition_index=0, controller_epoch=1, leader=1, leader_epoch=0, isr=[1, 2], zk_version=0,
            replicas=[1, 2],
        )  # fmt: skip
        states = [
            UpdateMetadataTopicState(
                topic_name=name,
                topic_id=(ids or {}).get(name, uuid.uuid5(TOPIC_ID, name)),
                partition_states=[partition],
            )
            for name in topics
        ]
        before = self.metadata.snapshot
        self.metadata.update(
            UpdateMetadataRequest(
                controller_id=-1, controller_epoch=1, broker_epoch=10, push=self.pushes, type_=1,
                topic_states=states,
            )
        )  # fmt: skip
        gone = before.names.keys() - self.metadata.snapshot.names.keys()
        self.coordinators.on_topics_deleted(NamedTopic(before.names[one], one) for one in gone)

    def become(self, leader=1, epoch=1, isr=(1, 2), min_isr=1, lost_in_epoch=-1, **in_zookeeper):
        """The controller's decision, which ZooKeeper has too, unless ``in_zookeeper`` says otherwise."""
        replicas = (BrokerId(1), BrokerId(2))
        state = PartitionState(
            leader=BrokerId(leader), leader_epoch=LeaderEpoch(epoch), isr=tuple(map(BrokerId, isr)),
            replicas=replicas, min_insync_replicas=min_isr, lost_in_epoch=LeaderEpoch(lost_in_epoch),
        )  # fmt: skip
        self.decide(**{"leader": leader, "epoch": epoch, **in_zookeeper})
        configs = {"cleanup.policy": "compact", "min.insync.replicas": str(min_isr)}
        return self.parts.roles.become(self.place, TOPIC_ID, state, configs, is_new=False)

    def decide(self, leader=1, epoch=1, topic_id=TOPIC_ID):
        """What ZooKeeper says of the partition."""
        replicas = (BrokerId(1), BrokerId(2))
        topic = znodes.TopicNode(topic_id, (znodes.Assignment(replicas),))
        state = PartitionState(
            leader=BrokerId(leader), leader_epoch=LeaderEpoch(epoch), isr=replicas, replicas=replicas
        )
        for path, data in (
            (znodes.topic_path(self.place.topic), znodes.encode_topic(topic)),
            (znodes.state_path(*self.place), znodes.encode_state(state, ControllerEpoch(1))),
        ):
            self.zookeeper.ensure_path(path)
            self.zookeeper.set(path, data)

    # The follower's part

    @property
    def partition(self):
        return self.replicas.get(self.place)

    def follow(self, offset=None):
        """Broker 2 fetches from ``offset``, or from the log's end: it has everything below."""
        epoch = self.partition.leader_epoch
        offset = self.partition.log_end_offset if offset is None else offset
        request = ReadRequest(offset, BYTES_MAX, epoch, -1, BrokerId(2), BrokerEpoch(20))
        return self.partition.reads.read(request, at_least_one_batch=True)

    # The loops' part

    def load(self, *, times_out=False):
        return self.loops.go_on("coordinator-loads", times_out=times_out)

    def confirm(self, *, times_out=False):
        return self.loops.go_on("coordinator-epochs", times_out=times_out)

    def serve(self, epoch=1):
        """Lead in ``epoch``, loaded and confirmed."""
        self.become(epoch=epoch)
        self.follow()
        self.load()
        self.confirm()

    def time(self, passed_ms):
        """The clock goes on, and then whatever the timer had due by now, in order."""
        self.clock.now_ms += passed_ms
        self.timer.fire()

    # The clients' part

    def ask(self, request):
        answers = []
        self.coordinators.submit(self.place.topic, request, answers.append)
        return answers

    def commit(self, offset, topic="events", group="g"):
        """The answers to a commit, as errors."""
        to_commit = OffsetToCommit(TopicPartition(topic, 0), offset)
        request = OffsetCommit(group_id=group, generation_id=-1, member_id="", offsets=(to_commit,))
        answers = []
        self.coordinators.submit(
            GROUP_OFFSETS_TOPIC, request, lambda response: answers.append(response.errors[0][1])
        )
        return answers

    def committed(self, group="g"):
        """The answers to a fetch of all offsets, as an error or as pairs of topic and offset."""
        answers = []

        def take(response):
            pairs = [(one.topic_partition.topic, one.offset) for one in response.offsets]
            answers.append(response.error or dict(pairs))

        request = OffsetFetch(group_id=group, topic_partitions=None)
        self.coordinators.submit(GROUP_OFFSETS_TOPIC, request, take)
        return answers


@pytest.fixture
def zookeeper():
    client = MemoryZooKeeperServer().client(operation_timeout_ms=50)
    yield client
    client.close()


@pytest.fixture
def coordinated(tmp_path, clock, zookeeper):
    return Coordinated(tmp_path, clock, zookeeper)
