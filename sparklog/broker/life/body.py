"""All that a broker is between its log directories and its dispatcher, made in one place.

``BrokerServer`` and the simulation's machine compose their brokers here, so that a seed runs what is shipped.
What differs between the two is a port: threads, guards, the store, producer ids, listeners of leaderships.
Nothing here begins to run: the owner starts loops and threads in the order of its life, and ends them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Self

from sparklog.broker.client_quotas import ClientQuotas
from sparklog.broker.context import BrokerContext
from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.coordination.broker_batches import BrokerCalls
from sparklog.broker.coordination.coordinators import CoordinatorShards
from sparklog.broker.coordination.internal_topic_creation import InternalTopics
from sparklog.broker.coordination.transaction_markers import TransactionMarkers
from sparklog.broker.coordination.transaction_verifier import TransactionVerifier
from sparklog.broker.disks.log_cleaner import LogCleaner
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.dispatch import Dispatcher
from sparklog.broker.internal_append import InternalAppends
from sparklog.broker.life.remote_copies import RemoteCopies, StorePorts
from sparklog.broker.life.replication import Link, Replication, ReplicationPorts
from sparklog.broker.metadata.departed_brokers import DepartedBrokers
from sparklog.broker.metadata.first_report import FirstReport
from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.broker.ports import LeadershipListener, Ports, ToController
from sparklog.broker.remote_log.copying.history_questions import HistoryQuestions, QuestionPorts
from sparklog.broker.replicas.directory_failures import OnDiskFailure
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.broker.to_controller.producer_ids import ProducerIds
from sparklog.broker.to_controller.report_copy import ReportCopy
from sparklog.broker.to_controller.schema_cache import Schemas
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.security.audit import Audit
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.loops import Loop, Loops
from sparklog.model.ports import Executor
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ZooKeeper
from sparklog.network.access.access_control import AccessControl, access_control_of
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse
from sparklog.zookeeper.entity_configs import ConfigsReader, EntityConfigs
from sparklog.zookeeper.rule_watch import RuleWatch

CONTROLLER_CALLS_MAX: Final = 4
"""Requests of clients that wait for the controller at the same time; further ones queue."""


def no_report(_: BrokerReportRequest) -> BrokerReportResponse:
    """The answer of a broker without a process of its own."""
    return BrokerReportResponse(error_code=ErrorCode.broker_not_available)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Numbers of the connections that a broker has to each other broker. A lane has one call at a time."""

    fetchers: int
    """Lanes from 0 to this one, exclusive: one for each fetcher of a leader."""

    @property
    def markers(self) -> int:
        """The lane of transaction markers, which wait for replicas."""
        return self.fetchers

    @property
    def verifications(self) -> int:
        """The lane of verifications of transactions."""
        return self.fetchers + 1

    @property
    def count(self) -> int:
        return self.fetchers + 2


@dataclass(frozen=True, slots=True)
class BodyPorts:
    """What a broker reaches, and what runs its work."""

    inside: Ports
    loops: Loops
    zookeeper_loops: Loops
    """Runs the loops that make no calls but may wait for ZooKeeper. May be ``loops``."""
    zookeeper: ZooKeeper
    link: Link
    controller: ToController
    waiting_room: Executor
    """``CONTROLLER_CALLS_MAX`` threads for what waits for the controller."""
    hang_up: Callable[[BrokerId, int], None]
    """Ends the call to a broker that is under way on a lane."""
    lanes: Lanes
    producer_ids: ProducerIds
    new_seed: Callable[[], int]
    store: StorePorts | None
    """None without ``remote.log.storage.url``."""
    leadership_listeners: tuple[Callable[[PartitionTable], LeadershipListener], ...] = ()
    """Notified of each leadership before the broker's own listeners."""
    config_readers: tuple[ConfigsReader, ...] = ()
    """Are given the settings of users, clients and addresses, beside the quotas."""
    own_principal: str = ANONYMOUS
    """By which other brokers and the controller know this broker."""
    identity: Mapping[str, str] = field(default_factory=dict)
    """Settings whose values the broker finds at its start; filled in once it listens."""
    audit: Audit | None = None
    """Gets denials and acts of administration; None without an audit."""
    own_report: Callable[[BrokerReportRequest], BrokerReportResponse] = no_report
    """Says what the broker's process knows of itself."""


@dataclass(frozen=True, slots=True)
class BrokerBody:
    """The parts of one broker, complete."""

    context: BrokerContext
    replication: Replication
    coordinators: CoordinatorShards
    cleaner: LogCleaner
    questions: HistoryQuestions
    copies: RemoteCopies | None
    """None without a remote store."""
    dispatcher: Dispatcher
    rule_watch: RuleWatch | None
    """None without an authorizer."""
    own_principal: str
    """As in ``BodyPorts``."""
    entity_configs: EntityConfigs
    """Keeps quotas and users as ZooKeeper has them."""

    @property
    def parts(self) -> ReplicaParts:
        return self.replication.parts

    @property
    def replicas(self) -> PartitionTable:
        return self.parts.table

    @classmethod
    def compose(
        cls,
        broker_id: BrokerId,
        cluster_id: str,
        config: BrokerConfig,
        log_dirs: LogDirs,
        ports: BodyPorts,
        on_disk_failure: OnDiskFailure,
    ) -> Self:
        """``log_dirs`` are open and recovered; their replicas are loaded. ``on_disk_failure``: as in
        ``Replication``.
        """
        inside = ports.inside
        metadata = MetadataCache(inside.new_guard())
        replication = Replication(
            broker_id, config, log_dirs, metadata, _replication_ports(ports), on_disk_failure
        )
        parts = replication.parts
        for listener_of in ports.leadership_listeners:
            parts.leadership.add_listener(listener_of(parts.table))
        parts.logs.load()
        coordinators = _coordinators(broker_id, parts, metadata, ports)
        calls = _calls(config, metadata, ports)
        markers = TransactionMarkers(metadata, inside, calls)
        coordinators.listen(TRANSACTION_STATE_TOPIC, markers.send)
        verifications = replace(calls, lane=ports.lanes.verifications)
        verifier = TransactionVerifier(broker_id, metadata, coordinators, inside, verifications)
        transactions = (coordinators, markers, verifier)
        access = access_control_of(config, inside.clock, inside.new_guard(), ports.audit)
        context = _context(broker_id, cluster_id, metadata, replication, transactions, ports, access)
        cleaner = LogCleaner(
            parts.table.partitions,
            log_dirs,
            parts.settings,
            inside.clock,
            guard=inside.new_guard(),
            new_seed=ports.new_seed,
        )
        return cls(
            context,
            replication,
            coordinators,
            cleaner,
            _questions(cluster_id, parts, ports),
            _copies(broker_id, parts, ports),
            Dispatcher(context),
            None if access is None else RuleWatch(ports.zookeeper, access.authorizer),
            ports.own_principal,
            EntityConfigs(ports.zookeeper, (context.quotas, *ports.config_readers)),
        )

    def read_rules(self) -> None:
        """Read the access rules, if there is an authorizer. Raises ConfigError if this broker may do nothing
        by them.
        """
        control = self.context.access_control
        if control is not None and self.rule_watch is not None:
            self.rule_watch.read_all()
            control.check_own_right(self.own_principal, f"broker {self.context.broker_id}")

    def question_loops(self) -> list[tuple[str, Callable[[], Loop]]]:
        """Names and beginnings of the loops that compare logs with their histories."""
        questions = self.questions
        return [
            (f"history-questions-{number}", partial(questions.loop, number))
            for number in range(questions.loops)
        ]


def _replication_ports(ports: BodyPorts) -> ReplicationPorts:
    return ReplicationPorts(
        inside=ports.inside,
        loops=ports.loops,
        zookeeper_loops=ports.zookeeper_loops,
        zookeeper=ports.zookeeper,
        link=ports.link,
        hang_up=ports.hang_up,
        lanes=ports.lanes.fetchers,
    )


def _calls(config: BrokerConfig, metadata: MetadataCache, ports: BodyPorts) -> BrokerCalls:
    """To other brokers, with markers; on the listener that brokers use."""

    def find_node(broker_id: BrokerId) -> Node | None:
        return metadata.node(broker_id, config.listeners.inter_broker)

    timeout_ms = config.get_int("request.timeout.ms")
    return BrokerCalls(ports.loops, find_node, lane=ports.lanes.markers, timeout_ms=timeout_ms)


def _context(
    broker_id: BrokerId,
    cluster_id: str,
    metadata: MetadataCache,
    replication: Replication,
    transactions: tuple[CoordinatorShards, TransactionMarkers, TransactionVerifier],
    ports: BodyPorts,
    access: AccessControl | None,
) -> BrokerContext:
    inside, parts, waits = ports.inside, replication.parts, replication.parts.waits
    coordinators, markers, verifier = transactions
    return BrokerContext(
        broker_id=broker_id,
        cluster_id=cluster_id,
        brokers_listener=parts.settings.now.listeners.inter_broker,
        metadata=metadata,
        first_report=FirstReport(metadata, inside.timer),
        doubted_leaders=replication.doubted_leaders,
        departed_brokers=DepartedBrokers(inside.clock),
        schemas=Schemas(metadata, ports.controller, inside.new_guard()),
        own_report=ports.own_report,
        report=ReportCopy(ports.controller, inside.clock, inside.new_guard()),
        columns=replication.columns,
        clock=inside.clock,
        settings=parts.settings,
        replicas=parts.table,
        roles=parts.roles,
        fence=parts.fence,
        log_dirs=parts.log_dirs,
        appends=waits.appends,
        deletions=waits.deletions,
        refusals=parts.refusals,
        fetches=waits.fetches,
        fetch_sessions=waits.fetch_sessions,
        fetches_in_progress=waits.fetches_in_progress,
        controller=ports.controller,
        producer_ids=ports.producer_ids,
        coordinators=coordinators,
        internal_topics=InternalTopics(
            ports.controller, ports.waiting_room, lambda: parts.settings.now, inside.clock, inside.new_guard()
        ),
        markers=markers,
        verifier=verifier,
        new_guard=inside.new_guard,
        waiting_room=ports.waiting_room,
        conversions=ConversionStatistics(inside.new_guard()),
        access_control=access,
        audit=ports.audit,
        quotas=ClientQuotas(_windows(parts.settings.now), inside.clock, inside.new_guard()),
        identity=ports.identity,
    )


def _windows(config: BrokerConfig) -> Windows:
    """Over which the rates of clients are measured."""
    seconds = config.get_int("quota.window.size.seconds")
    return Windows(config.get_int("quota.window.num"), seconds * 1_000)


def _coordinators(
    broker_id: BrokerId, parts: ReplicaParts, metadata: MetadataCache, ports: BodyPorts
) -> CoordinatorShards:
    return CoordinatorShards(
        broker_id,
        parts.table,
        InternalAppends(parts.table, parts.waits.appends, ports.inside.clock),
        parts.settings,
        parts.leadership,
        metadata,
        ports.inside,
        ports.zookeeper,
    )


def _copies(broker_id: BrokerId, parts: ReplicaParts, ports: BodyPorts) -> RemoteCopies | None:
    if ports.store is None:
        return None
    return RemoteCopies.compose(
        broker_id,
        parts.table,
        parts.settings,
        parts.waits.fetches,
        ports.zookeeper,
        ports.inside,
        ports.store,
    )


def _questions(cluster_id: str, parts: ReplicaParts, ports: BodyPorts) -> HistoryQuestions:
    """A broker without a store asks, too: partitions whose history it cannot read must say so."""
    store, clock = ports.store, ports.inside.clock
    if store is None:
        reached = QuestionPorts(ports.zookeeper, None, "", cluster_id, clock)
        questions = HistoryQuestions(parts.table.partitions, reached, loops=1)
    else:
        reached = QuestionPorts(ports.zookeeper, store.for_questions, store.url, cluster_id, clock)
        questions = HistoryQuestions(parts.table.partitions, reached, loops=store.question_loops)
    parts.leadership.add_listener(questions)
    return questions
