"""Brokers' rooms without sockets, whose fetchers call each other over real logs, and one whole broker."""

import threading
import uuid
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest

from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.handlers import fetch, list_offsets
from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.broker.metadata.doubted_leaders import DoubtedLeaders
from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.broker.waiting.joint_wait import Share
from sparklog.core.controller.state import znodes
from sparklog.model.cluster_facts import Node, PartitionState
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.loops import go_on
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import split
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.wire.messages.data.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.broker.partition_harness import batch as make_batch
from tests.broker.server_harness import Harness

TP = TopicPartition("quakes", 0)
TOPIC_ID = uuid.UUID(int=7)


class ManualClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def monotonic_ms(self):
        return self.now_ms

    def wall_ms(self):
        return self.now_ms


class ManualTimer:
    """Deadlines that fire when a test says so."""

    def __init__(self) -> None:
        self.waiting = []

    def after(self, delay_ms, action):
        entry = _Entry(self, delay_ms, action)
        self.waiting.append(entry)
        return entry

    def fire(self) -> None:
        waiting, self.waiting = self.waiting, []
        for entry in waiting:
            entry.action()


class _Entry:
    def __init__(self, timer, delay_ms, action) -> None:
        self.timer, self.delay_ms, self.action = timer, delay_ms, action

    def cancel(self) -> None:
        if self in self.timer.waiting:
            self.timer.waiting.remove(self)


class OneLogDirs:
    """Logs in a folder, without checkpoints."""

    def __init__(self, folder, clock) -> None:
        self.folder, self.clock, self.made = folder, clock, {}

    def logs(self):
        return dict(self.made)

    def is_online(self, topic_partition):
        return topic_partition in self.made

    def high_watermarks(self):
        return {}

    def create(self, topic_partition, topic_id, config, *, is_new):
        self.made[topic_partition] = Log.open(
            f"{self.folder}/{topic_partition}", topic_partition, topic_id, LogConfig.of(config), LocalDisk(),
            self.clock, recovery_point=0, clean=True,
        )  # fmt: skip
        return self.made[topic_partition]

    def delete(self, topic_partition) -> None:
        self.made.pop(topic_partition).delete()

    def home_of(self, topic_partition):
        return None

    def adopt(self, topic_partition, topic_id):
        return None

    def set_aside_rivals(self, topic_partition) -> None:
        """There is one directory."""


class Member:
    """One broker's replica manager, with a fetcher that is run by hand."""

    def __init__(self, number: int, folder, clock) -> None:
        self.id = BrokerId(number)
        self.epoch = BrokerEpoch(10 * number)
        self.clock, self.timer = clock, ManualTimer()
        self.proposals = []
        self.paused = []
        self.members: dict[int, Member] = {}
        self.fetcher: Fetcher | None = None
        self.requests = []
        ports = self.ports = Ports(clock=clock, timer=self.timer, executor=None, new_guard=threading.Lock)
        self.parts = ReplicaParts.compose(
            self.id, BrokerConfig(), OneLogDirs(folder, clock), ports, fetchers=self, proposals=self
        )
        self.parts.fence.broker_epoch = self.epoch

    @property
    def replicas(self):
        return self.parts.table

    @property
    def partition(self):
        return self.replicas.get(TP)

    def become(
        self, leader: int, epoch: int, isr=(1, 2), replicas=(1, 2), min_isr=2, lost_in_epoch=-1
    ) -> ErrorCode:
        state = PartitionState(
            leader=BrokerId(leader),
            leader_epoch=LeaderEpoch(epoch),
            isr=tuple(map(BrokerId, isr)),
            replicas=tuple(map(BrokerId, replicas)),
            min_insync_replicas=min_isr,
            lost_in_epoch=LeaderEpoch(lost_in_epoch),
        )
        return self.parts.roles.become(
            TP, TOPIC_ID, state, {"min.insync.replicas": str(min_isr)}, is_new=False
        )

    def produce(self, records, acks=-1, timeout_ms=1_000):
        """Answers appear in the returned list."""
        answers = []
        append = partial(self.partition.leader_append.append, AppendRequest(records, split(records), acks))
        share = Share(TP, append, self.partition.leader_append.forget)
        self.parts.waits.appends.run([share], timeout_ms, answers.append)
        return answers

    # Fetchers

    def start(self, partition, leader) -> None:
        self.fetcher = Fetcher(
            broker_id=self.id, broker_epoch=lambda: self.epoch, leader=leader,
            find_node=lambda number: Node(number, "nowhere", 1),
            config=BrokerConfig(), clock=self.clock, guard=threading.Lock(),
            doubts=DoubtedLeaders(self.clock),
        )  # fmt: skip
        self.fetcher.add(partition)

    def fetch_once(self, fetcher=None) -> int:
        """One round of a fetcher, ours if none is named; how many milliseconds it would pause then."""
        fetcher, pauses_ms = fetcher or self.fetcher, []

        def loop():
            pauses_ms.append((yield from fetcher.round()))

        running = loop()
        question = go_on(running)
        while question is not None:
            try:
                response = self.call(question.node, question.message, timeout_ms=question.timeout_ms)
            except (OSError, WireError) as error:
                question = go_on(running, error=error)
            else:
                question = go_on(running, response)
        return pauses_ms[0]

    def stop(self, partition) -> None:
        self.fetcher = None

    def together(self):
        return nullcontext()

    def ask_leader_offsets(self, partition) -> None:
        self.fetcher.ask_leader_offsets(partition)

    def back_off(self, partition, error) -> None:
        self.paused.append(error)
        self.fetcher.back_off(partition)

    # Proposals

    def propose(self, topic_partition, proposal) -> None:
        self.proposals.append(proposal)

    # Peers

    def call(self, broker, message, *, timeout_ms):
        self.requests.append(message)
        peer = self.members.get(broker.id)
        if peer is None:
            raise ConnectionError(f"broker {broker.id} is dead")
        return peer.answer(message)

    def forget(self, broker_id) -> None:
        pass

    def answer(self, message):
        if isinstance(message, ListOffsetsRequest):
            return self._answer_offsets(message)
        assert isinstance(message, FetchRequest)
        asked = message.topics[0].partitions[0]
        request = ReadRequest(
            asked.fetch_offset, asked.partition_max_bytes, asked.current_leader_epoch,
            asked.last_fetched_epoch, BrokerId(message.replica_id), BrokerEpoch(message.replica_epoch),
            asked.log_start_offset,
        )  # fmt: skip
        result = self.partition.reads.read(request, at_least_one_batch=True)
        data = fetch._partition(self._call(13), message, 0, result)
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])])

    def _answer_offsets(self, message):
        call, asked = self._call(8), message.topics[0].partitions[0]
        answer = list_offsets._answer(call, asked, list_offsets._find(call, message, "quakes", asked))
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="quakes", partitions=[answer])])

    def _call(self, version):
        return SimpleNamespace(version=version, partition=self.replicas.find)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def members(tmp_path, clock):
    """Brokers 1 and 2, which can reach each other."""
    pair = {}
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        pair[number] = Member(number, folder, clock)
    for member in pair.values():
        member.members = pair
    return pair


@pytest.fixture
def batch():
    return make_batch


@pytest.fixture
def options(tmp_path, zookeeper, zookeeper_address):
    for path in znodes.PERSISTENT_PATHS:
        zookeeper.ensure_path(path)
    return BrokerOptions(
        broker_id=BrokerId(1), host="127.0.0.1", log_dirs=(str(tmp_path / "logs"),),
        zookeeper=zookeeper_address, config=BrokerConfig.parse({"zookeeper.session.timeout.ms": "6000"}),
    )  # fmt: skip


@pytest.fixture
def broker(options):
    server = BrokerServer(options)
    server.start()
    harness = Harness(server)
    yield harness
    harness.connection.close()
    server.stop(clean=False)
