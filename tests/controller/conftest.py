"""Controllers on a real ZooKeeper, and brokers that only answer."""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sparklog.controller.controller_server import ControllerServer
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ConnectionLost, MultiFailed, SessionExpired
from sparklog.network.acceptor import Listener
from sparklog.network.clock import SystemClock
from sparklog.network.dialing.connection import Connection
from sparklog.network.exchange import Exchange
from sparklog.network.reactor import Reactor
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from sparklog.wire.messages.control.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from sparklog.zookeeper.broker_registration import register_broker
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

WAIT_S = 60
TIMEOUT_MS = 15_000


@dataclass
class FakeBroker:
    """Registers, listens, remembers what the controller says, and answers that all is well."""

    id: int
    zookeeper: KazooZooKeeper
    epoch: int = -1
    requests: list[Any] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    is_mute: bool = False
    unanswered: list[Exchange] = field(default_factory=list)

    def start(self, boot="boot", clean=False) -> "FakeBroker":
        self.reactor = Reactor(
            [Listener("127.0.0.1", 0)], self._handle, clock=SystemClock(), name=f"fake-{self.id}", handlers=1
        )
        self.reactor.start()
        return self.register(boot)

    def register(self, boot="boot") -> "FakeBroker":
        broker = Broker(BrokerId(self.id), plaintext("127.0.0.1", self.reactor.ports[0]))
        identity = DirectoryIdentity(f"directory-{self.id}")
        self.epoch = register_broker(self.zookeeper, broker, [identity], boot_id=boot, host_id="host")
        return self

    def expire(self) -> None:
        self.zookeeper.delete(znodes.broker_path(BrokerId(self.id)))

    def stop(self) -> None:
        self.reactor.stop()

    def speak(self) -> None:
        """Answer what came while it was mute."""
        self.is_mute = False
        unanswered, self.unanswered = self.unanswered, []
        for exchange in unanswered:
            self._answer(exchange)

    def _handle(self, exchange: Exchange) -> None:
        with self.changed:
            self.requests.append(decode_request(exchange.frame).body)
            self.changed.notify_all()
        if self.is_mute:
            self.unanswered.append(exchange)
        else:
            self._answer(exchange)

    def _answer(self, exchange: Exchange) -> None:
        header, body = decode_request(exchange.frame)
        match body:
            case UpdateMetadataRequest():
                response: Any = UpdateMetadataResponse()
            case LeaderAndIsrRequest():
                response = LeaderAndIsrResponse(topics=[_all_is_well(topic) for topic in body.topic_states])
            case StopReplicaRequest():
                response = StopReplicaResponse(
                    partition_errors=[
                        StopReplicaPartitionError(
                            topic_name=topic.topic_name, partition_index=one.partition_index
                        )
                        for topic in body.topic_states
                        for one in topic.partition_states
                    ]
                )
        exchange.reply(encode_response(response, header.api_version, header.correlation_id))

    # -- what it was told

    def told(self, kind, accept=lambda request: True):
        return [one for one in self.requests if isinstance(one, kind) and accept(one)]

    def wait_for(self, kind, accept=lambda request: True):
        """The first request of this kind that is accepted."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.told(kind, accept), WAIT_S), self.requests
            return self.told(kind, accept)[0]

    def wait_to_lead(self, topic: str, partition: int = 0, leader_epoch: int = 0):
        def leads(request):
            return any(
                state.topic_name == topic
                and one.partition_index == partition
                and one.leader == self.id
                and one.leader_epoch >= leader_epoch
                for state in request.topic_states
                for one in state.partition_states
            )

        return self.wait_for(LeaderAndIsrRequest, leads)


def _all_is_well(topic):
    errors = [
        LeaderAndIsrPartitionError(partition_index=one.partition_index) for one in topic.partition_states
    ]
    return LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors)


@dataclass
class Bench:
    """A corner of ZooKeeper with controllers and fake brokers in it, all of them stopped at the end."""

    address: str
    sessions: list[KazooZooKeeper] = field(default_factory=list)
    controllers: list[ControllerServer] = field(default_factory=list)
    brokers: dict[int, FakeBroker] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)

    def session(self, timeout_ms=6_000) -> KazooZooKeeper:
        session = KazooZooKeeper(self.address, timeout_ms).start(TIMEOUT_MS)
        self.sessions.append(session)
        return session

    @property
    def zookeeper(self) -> KazooZooKeeper:
        """The session of the test itself and of the fake brokers."""
        return self.sessions[0]

    def controller(self, zookeeper=None, **settings) -> ControllerServer:
        server = ControllerServer(
            zookeeper=zookeeper or self.session(),
            host="127.0.0.1",
            port=0,
            cluster_config=BrokerConfig.parse(
                {key.replace("_", "."): text for key, text in settings.items()}
            ),
            clock=SystemClock(),
            pid=os.getpid(),
            application=f"test-{len(self.controllers)}",
        )
        self.controllers.append(server)
        server.start()
        return server

    def broker(self, broker: int) -> FakeBroker:
        self.brokers[broker] = FakeBroker(broker, self.zookeeper).start()
        return self.brokers[broker]

    def call(self, controller: ControllerServer, message, version=None):
        return self.connect(controller).call(message, version=version, timeout_ms=TIMEOUT_MS)

    def connect(self, controller: ControllerServer) -> Connection:
        connection = Connection.open("127.0.0.1", controller.port, client_id="test", timeout_ms=TIMEOUT_MS)
        self.connections.append(connection)
        return connection

    def state(self, topic: str, partition: int = 0):
        node = self.zookeeper.get(znodes.state_path(topic, partition))
        assert node is not None
        return znodes.decode_state(topic, partition, node.data)

    def epoch(self, broker: int) -> BrokerEpoch:
        stat = self.zookeeper.exists(znodes.broker_path(BrokerId(broker)))
        assert stat is not None
        return BrokerEpoch(stat.czxid)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        for controller in self.controllers:
            controller.stop()
        for broker in self.brokers.values():
            broker.stop()
        for session in self.sessions:
            session.close()


@pytest.fixture
def bench(zookeeper_address) -> Iterator[Bench]:
    bench = Bench(zookeeper_address)
    bench.session()
    yield bench
    bench.close()


@pytest.fixture(autouse=True)
def quiet_kazoo():
    logging.getLogger("kazoo").setLevel(logging.ERROR)


class FlakyZooKeeper:
    """A real session whose answers can be withheld: before a write happens, after it, or for reads.

    A write that is ``late`` is still on its way when its client is told that the connection is lost.
    """

    def __init__(self, inner: KazooZooKeeper) -> None:
        self._inner = inner
        self.lose_writes: list[str] = []
        self.late: list[Any] = []
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def multi(self, operations, *, generation=None):
        lost = self.lose_writes.pop(0) if self.lose_writes else ""
        if lost == "before" or self.is_away:
            raise ConnectionLost("the write was not sent")
        if lost == "expired":
            raise SessionExpired("the session is over")
        if lost == "late":
            self.late.append(operations)
            raise ConnectionLost("no answer came")
        result = self._inner.multi(operations, generation=generation)
        if lost:
            raise ConnectionLost("the answer was lost")
        return result

    def let_late_writes_happen(self) -> list[MultiFailed | None]:
        """What ZooKeeper says to each; None where it took place."""
        late, self.late = self.late, []
        return [self._outcome(operations) for operations in late]

    def _outcome(self, operations: Any) -> MultiFailed | None:
        try:
            self._inner.multi(operations)
        except MultiFailed as refused:
            return refused
        return None

    def get(self, path):
        self._refuse_if_away()
        return self._inner.get(path)

    def get_many(self, paths):
        self._refuse_if_away()
        return self._inner.get_many(paths)

    def exists(self, path):
        self._refuse_if_away()
        return self._inner.exists(path)

    def children(self, path):
        self._refuse_if_away()
        return self._inner.children(path)

    def _refuse_if_away(self) -> None:
        if self.is_away:
            raise ConnectionLost("ZooKeeper is away")


@pytest.fixture
def flaky_zookeeper(zookeeper) -> FlakyZooKeeper:
    return FlakyZooKeeper(zookeeper)
