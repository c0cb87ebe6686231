"""Brokers that hold the control side only, all in one process, told what to do on its standard input.

python control_stubs.py ZOOKEEPER BROKERS

Each registers in ZooKeeper as brokers do, and answers UpdateMetadata, LeaderAndIsr and StopReplica at once:
the time that a change takes is then the controller's and ZooKeeper's, with what it costs to read the
messages. No log is opened and nobody fetches.

Orders, and the answer that each waits for:

    {"do": "roles", "count": N}    until N replicas have been told a role; when the last of them was
    {"do": "lose", "broker": B, "office": true}
                                   take B's registration away, and the controller's office with it if that is
                                   asked for, as the end of their sessions would; until every partition that B
                                   led is led by another, and, after a change of office, every broker has
                                   taken up everything from the new controller
    {"do": "return", "broker": B}  register B again; until it was told all its roles
    {"do": "join", "broker": B, "port": P}
                                   leaders propose B for every ISR that it is missing from, to the controller
                                   at this port, one request each; until all are answered
"""

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.core.controller.state.znodes import CONTROLLER, PERSISTENT_PATHS, broker_path
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Delete, Operation
from sparklog.network.acceptor import Listener
from sparklog.network.dialing.connection import Connection
from sparklog.network.exchange import Exchange
from sparklog.network.reactor import Reactor
from sparklog.wire.codec import Message, decode_request, encode_response
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest, StopReplicaResponse
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import KNOWN_VERSIONS
from sparklog.zookeeper.broker_registration import register_broker
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

SESSION_TIMEOUT_MS: Final = 60_000
WAIT_TIMEOUT_S: Final = 300.0
HOST: Final = "127.0.0.1"
FULL: Final = 1

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Role:
    """One partition as its controller last told it to its leader."""

    topic_id: uuid.UUID
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@dataclass(slots=True)
class Told:
    """What the brokers together were told: guarded by ``changed``."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    states: dict[Partition, Role] = field(default_factory=dict)
    live: dict[int, int] = field(default_factory=dict)
    """The epochs of the registered brokers."""
    names: dict[uuid.UUID, str] = field(default_factory=dict)
    roles: int = 0
    led_by_lost: set[Partition] = field(default_factory=set)
    epoch: int = -1
    hosted: dict[int, set[Partition]] = field(default_factory=dict)
    """By broker; a full request says all of it."""
    full_in_epoch: dict[int, int] = field(default_factory=dict)
    last_at: float = 0.0

    def note(self, broker: int, request: LeaderAndIsrRequest) -> None:
        named = {
            (topic.topic_name, state.partition_index): Role(
                topic.topic_id, state.leader, state.leader_epoch, state.partition_epoch, tuple(state.isr)
            )
            for topic in request.topic_states
            for state in topic.partition_states
        }
        with self.changed:
            self.epoch = max(self.epoch, request.controller_epoch)
            self.roles += len(named)
            self.names.update({topic.topic_id: topic.topic_name for topic in request.topic_states})
            if request.type_ == FULL:
                self.hosted[broker] = set()
                self.full_in_epoch[broker] = request.controller_epoch
            self.hosted.setdefault(broker, set()).update(named)
            for partition, role in named.items():
                if role.leader == broker:
                    self.states[partition] = role
                    self.led_by_lost.discard(partition)
            self.last_at = time.monotonic()
            self.changed.notify_all()


class StubBroker:
    def __init__(self, broker: int, zookeeper: KazooZooKeeper, told: Told) -> None:
        self.id = broker
        self._zookeeper = zookeeper
        self._told = told
        self._reactor = Reactor([Listener(HOST, 0)], self._handle, handlers=1, name=f"stub-{broker}")

    def start(self) -> None:
        self._reactor.start()
        self.register()

    def register(self) -> None:
        directory = DirectoryIdentity(f"directory-{self.id}")
        broker = Broker(BrokerId(self.id), plaintext(HOST, self._reactor.ports[0]))
        register_broker(self._zookeeper, broker, [directory], "boot", "host")

    def _handle(self, exchange: Exchange) -> None:
        request = decode_request(exchange.frame)
        response = self._answer(request.body)
        header = request.header
        exchange.reply(encode_response(response, header.api_version, header.correlation_id))

    def _answer(self, request: object) -> Message:
        match request:
            case LeaderAndIsrRequest():
                self._told.note(self.id, request)
                return _taken_up(request)
            case UpdateMetadataRequest():
                self._told.live = {broker.id_: broker.epoch for broker in request.live_brokers}
                return UpdateMetadataResponse()
            case StopReplicaRequest():
                return StopReplicaResponse()
            case ApiVersionsRequest():
                keys = [ApiVersion(api_key=k, min_version=v.min, max_version=v.max) for k, v in _VERSIONS]
                return ApiVersionsResponse(api_keys=keys)
        raise TypeError(f"a stub broker was asked for {type(request).__name__}")


_VERSIONS: Final = tuple(KNOWN_VERSIONS.items())


def _taken_up(request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(partition_index=state.partition_index)
                    for state in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ]
    )


class Stubs:
    def __init__(self, connect: str, brokers: int) -> None:
        self._zookeeper = KazooZooKeeper(connect, SESSION_TIMEOUT_MS).start(SESSION_TIMEOUT_MS)
        self._told = Told()
        for path in PERSISTENT_PATHS:
            self._zookeeper.ensure_path(path)
        self._brokers = {
            number: StubBroker(number, self._zookeeper, self._told) for number in range(1, brokers + 1)
        }
        for stub in self._brokers.values():
            stub.start()

    def roles(self, count: int) -> float:
        told = self._told
        with told.changed:
            self._wait(lambda: told.roles >= count)
            told.roles = 0
            return told.last_at

    def lose(self, broker: int, office: bool) -> float:
        """Seconds from the loss to the last word of the controller about it."""
        told = self._told
        operations: list[Operation] = [Delete(CONTROLLER)] if office else []
        with told.changed:
            epoch = told.epoch
            if broker:
                told.led_by_lost = {one for one, role in told.states.items() if role.leader == broker}
                operations.append(Delete(broker_path(BrokerId(broker))))
        began = time.monotonic()
        self._zookeeper.multi(operations)
        others = [one for one in self._brokers if one != broker]

        def is_through() -> bool:
            if told.led_by_lost:
                return False
            return not office or all(told.full_in_epoch.get(one, -1) > epoch for one in others)

        with told.changed:
            self._wait(is_through)
            told.roles = 0
            return told.last_at - began

    def come_back(self, broker: int) -> float:
        told = self._told
        with told.changed:
            expected = len(told.hosted[broker])
            told.hosted[broker] = set()
        began = time.monotonic()
        self._brokers[broker].register()
        with told.changed:
            self._wait(lambda: len(told.hosted[broker]) >= expected)
            told.roles = 0
            return told.last_at - began

    def join(self, broker: int, port: int) -> float:
        began = time.monotonic()
        leaders = {role.leader for role in self._told.states.values()}
        with ThreadPoolExecutor(len(leaders)) as pool:
            list(pool.map(lambda leader: self._propose_all(leader, broker, port), leaders))
        return time.monotonic() - began

    def _propose_all(self, leader: int, broker: int, port: int) -> None:
        with Connection.open(HOST, port, client_id="stub", timeout_ms=10_000) as connection:
            while request := self._proposals(leader, broker):
                self._take_in(connection.call(request, timeout_ms=int(WAIT_TIMEOUT_S * 1000)), broker)

    def _take_in(self, response: AlterPartitionResponse, broker: int) -> None:
        """What was beyond the controller's measure for one request is proposed again by the next one."""
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code is ErrorCode.none:
                    partition = self._told.names[topic.topic_id], one.partition_index
                    role = self._told.states[partition]
                    self._told.states[partition] = replace(
                        role, isr=tuple(one.isr), partition_epoch=one.partition_epoch
                    )
                elif one.error_code is not ErrorCode.operation_not_attempted:
                    raise RuntimeError(f"broker {broker} was not taken into an ISR: {one}")

    def _proposals(self, leader: int, broker: int) -> AlterPartitionRequest | None:
        topics: dict[uuid.UUID, AlterPartitionTopic] = {}
        for (_, number), role in self._told.states.items():
            if role.leader == leader and broker not in role.isr:
                members = [
                    BrokerState(broker_id=one, broker_epoch=self._told.live[one])
                    for one in (*role.isr, broker)
                ]
                topics.setdefault(
                    role.topic_id, AlterPartitionTopic(topic_id=role.topic_id)
                ).partitions.append(
                    AlterPartitionPartition(
                        partition_index=number,
                        leader_epoch=role.leader_epoch,
                        partition_epoch=role.partition_epoch,
                        new_isr_with_epochs=members,
                    )
                )
        if not topics:
            return None
        return AlterPartitionRequest(
            broker_id=leader, broker_epoch=self._told.live[leader], topics=list(topics.values())
        )

    def _wait(self, is_so: Callable[[], bool]) -> None:
        if not self._told.changed.wait_for(is_so, WAIT_TIMEOUT_S):
            raise TimeoutError(f"not within {WAIT_TIMEOUT_S:.0f} s")


def main() -> None:
    stubs = Stubs(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        match order["do"]:
            case "roles":
                answer = stubs.roles(order["count"])
            case "lose":
                answer = stubs.lose(order.get("broker", 0), order.get("office", False))
            case "return":
                answer = stubs.come_back(order["broker"])
            case "join":
                answer = stubs.join(order["broker"], order["port"])
        print(json.dumps({"seconds": answer, "cpu_s": time.process_time()}), flush=True)


if __name__ == "__main__":
    main()
