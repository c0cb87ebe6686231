"""A ZooKeeper in a dictionary and a small world around one controller machine."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sparklog.controller.snapshot import read_brokers, read_entities, read_registered, read_snapshot
from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.controller_command import Command, CommandId
from sparklog.core.controller.commands.partition_commands import AlterPartition, IsrProposal, ProposedMember
from sparklog.core.controller.commands.topic_commands import CreateTopics, TopicToCreate
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity, next_incarnation
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.core.security.requester import ANONYMOUS, Requester
from sparklog.model.cluster_facts import Broker, PartitionState, plaintext
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import (
    ANY_VERSION,
    Check,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Node,
    SetData,
    Stat,
)

REQUESTER = Requester(ANONYMOUS, "10.0.0.7")


@dataclass
class DictZooKeeper:
    """Nodes in a dictionary; a multi is all or nothing and one transaction."""

    nodes: dict[str, Node] = field(default_factory=dict)
    zxid: int = 100
    lose_next: str = ""  # "before" or "after": the connection is lost before or after the next multi happened

    def get(self, path):
        return self.nodes.get(path)

    def get_many(self, paths):
        return [self.get(path) for path in paths]

    def exists(self, path):
        node = self.nodes.get(path)
        return None if node is None else node.stat

    def children(self, path):
        return sorted(
            {rest.split("/")[0] for key in self.nodes if (rest := key.removeprefix(path + "/")) != key}
        )

    def multi(self, operations, *, generation=None):
        lost, self.lose_next = self.lose_next, ""
        if lost == "before":
            raise ConnectionLost("before")
        nodes = dict(self.nodes)
        for index, operation in enumerate(operations):
            reason = self._apply(nodes, operation)
            if reason:
                raise MultiFailed(index, operation, reason)
        self.nodes = nodes
        self.zxid += 1
        if lost == "after":
            raise ConnectionLost("after")
        return [None] * len(operations)

    def _apply(self, nodes, operation):
        node = nodes.get(operation.path)
        zxid = self.zxid + 1
        match operation:
            case Create(path, data, ephemeral, sequential):
                if sequential:
                    path += f"{sum(key.startswith(path) for key in nodes):010}"
                elif node is not None:
                    return "node_exists"
                nodes[path] = Node(data, Stat(0, zxid, zxid, 1 if ephemeral else 0))
                return ""
            case _ if node is None:
                return "no_node"
            case SetData(path, data, version):
                if version not in (ANY_VERSION, node.stat.version):
                    return "bad_version"
                nodes[path] = Node(data, Stat(node.stat.version + 1, node.stat.czxid, zxid))
            case Delete(path, version):
                if any(key.startswith(path + "/") for key in nodes):
                    return "not_empty"
                del nodes[path]
            case Check(_, version):
                if version != node.stat.version:
                    return "bad_version"
        return ""


@dataclass
class World:
    """One controller, its ZooKeeper, and brokers that register, die, and answer when told to."""

    config: BrokerConfig = field(default_factory=BrokerConfig)
    zk: DictZooKeeper = field(default_factory=DictZooKeeper)
    now_ms: int = 0
    done: list[act.Action] = field(default_factory=list)
    machine: ControllerMachine = field(init=False)
    next_command: int = 0
    drawn: int = 0
    before_write: list[Callable[[], None]] = field(default_factory=list)
    lose_answers: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.zk.multi([Create(znodes.CONTROLLER_EPOCH, b"0")])
        self.machine = ControllerMachine(self.config)

    # -- ZooKeeper's side

    def register(self, broker, *, directory=None, directories=None, boot="boot", clean=False, rack=None):
        """What a broker's registration does; unproven with another boot and no clean stop."""
        broker = BrokerId(broker)
        path, record_path = znodes.broker_path(broker), znodes.incarnation_path(broker)
        node = self.zk.get(record_path)
        previous = (
            None
            if node is None
            else znodes.decode_incarnation(broker, node.data, node.stat.version, node.stat.mzxid)
        )
        epoch = previous.broker_epoch if previous is not None and clean else None
        given = directories or [DirectoryIdentity(directory or f"directory-{broker}", clean_epoch=epoch)]
        record = next_incarnation(previous, given, host_id="host", boot_id=boot)
        data = znodes.encode_incarnation(record)
        operations = [Delete(path)] if self.zk.get(path) else []
        operations.append(
            Create(
                path, znodes.encode_broker(Broker(broker, plaintext("host", 9000 + broker), rack=rack)), True
            )
        )
        operations.append(
            Create(record_path, data) if node is None else SetData(record_path, data, previous.number)
        )
        self.zk.multi(operations)

    def expire(self, broker):
        self.zk.multi([Delete(znodes.broker_path(broker))])

    # -- the shell's side

    def activate(self):
        epoch = int(self.zk.get(znodes.CONTROLLER_EPOCH).data) + 1
        version = self.zk.exists(znodes.CONTROLLER_EPOCH).version
        self.zk.multi([SetData(znodes.CONTROLLER_EPOCH, str(epoch).encode(), version)])
        self.machine = ControllerMachine(self.config)
        return self.do(self.machine.on_activated(self.snapshot(epoch, version + 1), self.now_ms))

    def snapshot(self, epoch=None, version=None):
        image = self.machine.image
        return read_snapshot(
            self.zk,
            ControllerEpoch(image.controller_epoch if epoch is None else epoch),
            image.controller_epoch_version if version is None else version,
        )

    def do(self, actions):
        """Carry out actions as the shell does; returns all that were carried out."""
        done: list[act.Action] = []
        while True:
            questions = (
                act.WriteZooKeeper,
                act.ReadBrokers,
                act.ReadRegistered,
                act.ReadEntities,
                act.Reload,
            )
            assert not any(isinstance(action, questions) for action in actions[:-1]), actions
            done += actions
            self.machine.check_invariants()
            if not actions or not isinstance(actions[-1], questions):
                self.done += done
                return done
            actions = self._ask(actions[-1])

    def _ask(self, question):
        match question:
            case act.WriteZooKeeper(operations):
                if self.before_write:
                    self.before_write.pop(0)()
                if self.lose_answers:
                    self.zk.lose_next = self.lose_answers.pop(0)
                try:
                    self.zk.multi(operations)
                except ConnectionLost:
                    return self.machine.on_write_lost(self.now_ms)
                except MultiFailed as refused:
                    return self.machine.on_write_refused(refused.index, refused.reason, self.now_ms)
                return self.machine.on_written(self.now_ms)
            case act.ReadBrokers():
                return self.machine.on_brokers(read_brokers(self.zk), self.now_ms)
            case act.ReadRegistered():
                return self.machine.on_registered(read_registered(self.zk), self.now_ms)
            case act.ReadEntities():
                return self.machine.on_entities(read_entities(self.zk), self.now_ms)
            case act.Reload():
                return self.machine.on_reloaded(self.snapshot(), self.now_ms)

    def see_brokers(self):
        return self.do(self.machine.on_brokers(read_brokers(self.zk), self.now_ms))

    def start(self, *brokers, **how):
        for broker in brokers:
            self.register(broker, **how)
        return self.see_brokers()

    def crash(self, *brokers):
        """All of them at once, as one event."""
        for broker in brokers:
            self.expire(broker)
        return self.see_brokers()

    def report_death(self, broker, epoch=None):
        epoch = self.epoch(broker) if epoch is None else epoch
        return self.do(self.machine.on_broker_died(BrokerId(broker), BrokerEpoch(epoch), self.now_ms))

    def command(self, request):
        """The answer, or None while the command waits."""
        self.next_command += 1
        return self.answer_in(self.submit(request), self.next_command)

    def submit(self, request, command_id=None, **client):
        """What the machine does about the request of somebody. ``client``: as in ``Command``."""
        command_id = CommandId(self.next_command if command_id is None else command_id)
        given = Command(request, REQUESTER, **client)
        return self.do(self.machine.on_command(command_id, given, self.now_ms))

    def answer_in(self, done, command=None):
        found = [one.result for one in done if isinstance(one, act.Answer) and command in (None, one.command)]
        return found[0] if found else None

    def answer_pushes(self, done, errors=None, ends=None):
        """Every broker answers what it was sent, with the given errors by (broker, partition); where nobody
        leads it tells the ends of its logs, likewise: (last epoch, end offset).
        """
        answers = []
        for send in list(done):
            if isinstance(send, act.SendUpdateMetadata | act.SendLeaderAndIsr | act.SendStopReplica):
                wrong = {one: code for (broker, one), code in (errors or {}).items() if broker == send.broker}
                told = self.ends_told(send, ends or {})
                answer = act.PushAnswer(send.push, send.broker, send.broker_epoch, wrong, told)
                answers += self.do(self.machine.on_push_answered(answer, self.now_ms))
        return answers

    def ends_told(self, send, ends):
        if not isinstance(send, act.SendLeaderAndIsr):
            return {}
        leaderless = {
            TopicPartition(topic.name, number): state.leader_epoch
            for topic in send.topics
            for number, state in topic.partitions
            if not state.has_leader
        }
        return {
            one: LogEnd(epoch, *ends[send.broker, one])
            for one, epoch in leaderless.items()
            if (send.broker, one) in ends
        }

    # -- questions and shorthands

    def epoch(self, broker):
        return self.zk.exists(znodes.broker_path(broker)).czxid

    def state(self, topic="t", partition=0) -> PartitionState:
        state = self.machine.image.state(TopicPartition(topic, partition))
        assert state is not None
        return state

    def stored(self, topic="t", partition=0) -> PartitionState:
        """What ZooKeeper holds, which must be what the image says."""
        node = self.zk.get(znodes.state_path(topic, partition))
        assignment = self.machine.image.topics[topic].node.assignments[partition]
        stored = znodes.decode_state(topic, partition, node.data).partition(assignment, node.stat.version)
        assert stored == self.state(topic, partition)
        return stored

    def new_topic(self, name="t", replicas=((1, 2, 3),), **more):
        self.drawn += 1
        assignment = {number: tuple(map(BrokerId, one)) for number, one in enumerate(replicas)}
        return TopicToCreate(name, uuid.UUID(int=self.drawn), assignment=assignment, **more)

    def create(self, name="t", replicas=((1, 2, 3),), **configs):
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic = self.new_topic(name, replicas, configs=settings)
        request = CreateTopics((topic,), 10_000)
        self.next_command += 1
        self.answer_pushes(self.submit(request))
        return topic.id

    def propose(
        self, leader, *isr, topic="t", partition=0, leader_epoch=None, partition_epoch=None, epochs=None
    ):
        """An AlterPartition of one partition, with the members' present epochs unless given."""
        state, epochs = self.state(topic, partition), epochs or {}
        members = tuple(
            ProposedMember(BrokerId(one), BrokerEpoch(epochs[one] if one in epochs else self.epoch(one)))
            for one in isr
        )
        proposal = IsrProposal(
            self.machine.image.topics[topic].id,
            partition,
            state.leader_epoch if leader_epoch is None else leader_epoch,
            state.partition_epoch if partition_epoch is None else partition_epoch,
            members,
        )
        broker_epoch = epochs.get("leader", self.epoch(leader) if leader not in epochs else epochs[leader])
        result = self.command(AlterPartition(BrokerId(leader), BrokerEpoch(broker_epoch), (proposal,)))
        return result.answers[0] if result.answers else result


@pytest.fixture
def world() -> World:
    """Brokers 1, 2 and 3, a controller, and no topic."""
    world = World()
    for broker in (1, 2, 3):
        world.register(broker)
    world.activate()
    return world


@pytest.fixture
def make_world() -> type[World]:
    return World
