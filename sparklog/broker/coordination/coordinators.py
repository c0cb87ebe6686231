"""The coordinators of this broker: their shards by partition, and their loops.

A shard lives for one leader epoch. It begins when this broker begins to lead a partition of an internal
topic, and resigns when that ends, or when ZooKeeper has another leader. A request goes to the shard of its
key's partition; NOT_COORDINATOR says that this broker does not lead that partition: FindCoordinator names
the broker that does.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from sparklog.broker.coordination.confirmation import Confirmations
from sparklog.broker.coordination.kinds import KINDS, CoordinatorKind
from sparklog.broker.coordination.loading import Loads
from sparklog.broker.coordination.shard_host import Listener, ShardHost
from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.internal_append import InternalAppends
from sparklog.broker.leadership import LeadershipListeners
from sparklog.broker.metadata.metadata_cache import CachedTopic, MetadataCache
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.coordinator.attention import Attention
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.coordinator.shard import Shard
from sparklog.core.coordinator.state_machine import Request
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, LeaderEpoch, NamedTopic, TopicId, TopicPartition
from sparklog.model.loops import Loops
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import SessionEvent, ZooKeeper

LOOKS_PER_LIMIT: Final = 4
"""How often the clock is looked at, within the longest pause that is no standstill."""


class CoordinatorShards:
    """``broker.ports.Coordinators``, and a ``LeadershipListener``."""

    def __init__(
        self,
        broker_id: BrokerId,
        replicas: PartitionTable,
        appends: InternalAppends,
        settings: CurrentSettings,
        leadership: LeadershipListeners,
        metadata: MetadataCache,
        ports: Ports,
        zookeeper: ZooKeeper,
    ) -> None:
        self._replicas = replicas
        self._appends = appends
        self._settings = settings
        self._leadership = leadership
        self._metadata = metadata
        self._ports = ports
        self._zookeeper = zookeeper
        config, clock = settings.now, ports.clock
        session_timeout_ms = config.get_int("zookeeper.session.timeout.ms")
        self._attention = Attention(session_timeout_ms, clock.monotonic_ms())
        self.loads: Final = Loads(clock, metadata, config.get_int("offsets.load.buffer.size"))
        self._confirmations = Confirmations(broker_id, zookeeper, self._attention, clock)
        self._hosts: dict[TopicPartition, ShardHost] = {}
        self._ended_guard = ports.new_guard()
        self._ended_counts: dict[str, Counter[str]] = {topic: Counter() for topic in KINDS}
        """By internal topic, what the machines of ended shards have counted."""
        self._listeners: dict[str, Listener] = {}
        """By internal topic, the shells of those kinds whose machines tell something."""
        self._batch_limits: dict[str, tuple[CachedTopic | None, BrokerConfig, int]] = {}
        """By topic, the metadata and settings that were read, and the largest batch by them."""

    def listen(self, topic: str, listener: Listener) -> None:
        """From now on ``listener`` takes what the machines of a kind tell; before the first role."""
        self._listeners[topic] = listener

    def start(self, loops: Loops, zookeeper_loops: Loops) -> None:
        """Listen to changes of leadership, and begin the loops; before the first role."""
        self._leadership.add_listener(self)
        self._zookeeper.on_session(self._on_session)
        loops.start("coordinator-loads", self.loads.loop)
        zookeeper_loops.start("coordinator-epochs", self._confirmations.loop)
        self._look()

    def hosts(self) -> Collection[ShardHost]:
        """The shards that load or are active, for metrics and checks."""
        return list(self._hosts.values())

    def counts(self, topic: str) -> Mapping[str, int]:
        """What all machines of one kind have counted on this broker, those of ended shards included."""
        with self._ended_guard:
            total = Counter(self._ended_counts[topic])
            for host in self.hosts():
                if host.topic_partition.topic == topic:
                    total.update(host.shard.machine.counts())
            return total

    # broker.ports.LeadershipListener

    def began_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        kind = KINDS.get(topic_partition.topic)
        partition = self._replicas.get(topic_partition)
        if kind is None or partition is None:
            return
        host = self._new_host(kind, topic_partition, partition.topic_id, leader_epoch)
        self._hosts[topic_partition] = host
        host.begin()
        self.loads.add(host, partition, kind.codec)

    def ceased_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        host = self._hosts.get(topic_partition)
        if host is not None and host.leader_epoch == leader_epoch:
            with self._ended_guard:
                del self._hosts[topic_partition]
                self._ended_counts[topic_partition.topic].update(host.shard.machine.counts())
            host.resign()

    # broker.ports.Coordinators

    def submit(self, topic: str, request: Request[Any], reply: Callable[[Any], None]) -> None:
        host = self._host_of(topic, request)
        if host is not None:
            host.submit(request, reply)
            return
        invalid = request.invalid()
        reply(request.refused(ErrorCode.not_coordinator) if invalid is None else invalid)

    def submit_to_every_host(
        self, topic: str, request: Request[Any], reply: Callable[[list[Any]], None]
    ) -> None:
        hosts = [host for host in self.hosts() if host.topic_partition.topic == topic]
        if not hosts:
            reply([])
            return
        guard, responses = self._ports.new_guard(), list[Any]()

        def take(response: Any) -> None:
            with guard:
                responses.append(response)
                is_last = len(responses) == len(hosts)
            if is_last:
                reply(responses)

        for host in hosts:
            host.submit(request, take)

    def on_topics_deleted(self, topics: Iterable[NamedTopic]) -> None:
        gone = frozenset(topics)
        for host in self.hosts():
            host.on_topics_deleted(gone)

    def on_end(self, topic_partition: TopicPartition, producer_id: int, is_commit: bool, offset: int) -> None:
        host = self._hosts.get(topic_partition)
        if host is not None:
            host.on_end(producer_id, is_commit, offset)

    # Details

    def _host_of(self, topic: str, request: Request[Any]) -> ShardHost | None:
        """The shard of the request's key, if this broker has it."""
        metadata = self._metadata.topic(topic)
        if metadata is None or request.key is None:
            return None
        number = partition_of(request.key, len(metadata.partitions))
        return self._hosts.get(TopicPartition(topic, number))

    def _new_host(
        self,
        kind: CoordinatorKind,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        leader_epoch: LeaderEpoch,
    ) -> ShardHost:
        config = self._settings.now
        timeout_ms = kind.timeout_ms(config)
        batch_bytes_max = partial(self._batch_bytes_max, kind.topic)
        shard = Shard(
            kind.new_machine(config, leader_epoch),
            self._attention,
            encode=kind.codec.encode,
            wait_max_ms=timeout_ms,
            batch_bytes_max=batch_bytes_max(),
        )
        return ShardHost(
            topic_partition,
            topic_id,
            leader_epoch,
            shard,
            self._replicas,
            self._appends,
            self._ports,
            append_timeout_ms=timeout_ms,
            compression=kind.compression(config),
            batch_bytes_max=batch_bytes_max,
            confirm=self._confirmations.ask,
            tell=self._listeners.get(kind.topic, _nobody_listens),
        )

    def _batch_bytes_max(self, topic: str) -> int:
        """The topic's ``max.message.bytes``, read anew only when settings have changed."""
        metadata, config = self._metadata.topic(topic), self._settings.now
        known = self._batch_limits.get(topic)
        if known is not None and known[0] is metadata and known[1] is config:
            return known[2]
        configs = {} if metadata is None else metadata.configs
        limit = config.topic(configs).get_int("max.message.bytes")
        self._batch_limits[topic] = (metadata, config, limit)
        return limit

    def _look(self) -> None:
        """Look at the clock, and again soon: a pause of this process is noticed by the time in between."""
        self._attention.standstills(self._ports.clock.monotonic_ms())
        self._ports.timer.after(max(1, self._attention.limit_ms // LOOKS_PER_LIMIT), self._look)

    def _on_session(self, event: SessionEvent) -> None:
        if event == "connected":
            self._attention.on_connected()
        else:
            self._attention.on_disconnected(self._ports.clock.monotonic_ms())


def _nobody_listens(host: ShardHost, message: Any) -> None:
    raise AssertionError(f"{host.topic_partition}: no shard takes {message}")
