"""Asks a cluster for all that the doctor judges by: the controller's report, and Kafka's APIs.

Each part is asked for by itself. One that fails, because nobody answers or the user has no right to it, is
noted with the reason, and the others are gathered all the same.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, LateGroup, Part, SeenBroker, SeenTopic
from sparklog.client import offsets
from sparklog.client.admin import Admin
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.cluster_reports import report_of_broker, report_of_brokers
from sparklog.client.group.committed_offsets import fetch_committed
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.group.lag_look import GroupLag, LagLook, look_at_groups
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, KnownLeader
from sparklog.client.offsets import CONSUMER
from sparklog.client.settings import describe_broker
from sparklog.client.transactions.hanging import hanging_transactions
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import TOPIC_RESOURCE
from sparklog.wire.messages.data.list_offsets import EARLIEST_TIMESTAMP
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse

LATE_MS: Final = 300_000
"""An unread record that is older than this makes its group late."""
PROGRESS_WAIT_MS: Final = 6_000
"""Between two looks at a late group: consumers commit every 5 s by default."""
REPORT_TIMEOUT_MS: Final = 5_000
BROKER_TIMEOUT_MS: Final = 3_000
OFFSETS_TIMEOUT_MS: Final = 8_000
TOPICS_AT_ONCE: Final = 500
"""Topics whose settings are asked for in one request."""
MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
MAX_TIMEOUT_DEFAULT_MS: Final = 900_000


class FactsGathering:
    """One round of questions; ``gather`` carries it out. ``options`` are those that name the cluster."""

    def __init__(self, cluster: ClusterClient, options: str) -> None:
        self._cluster = cluster
        self._facts = ClusterFacts(options=options, now_ms=cluster.clock.wall_ms())

    def gather(self) -> ClusterFacts:
        """ClusterUnavailable if no broker answers."""
        seen = self._cluster.metadata()
        nodes = tuple(sorted(seen.brokers.values(), key=lambda node: node.id))
        self._facts = replace(self._facts, nodes=nodes)
        self._add(Part.report, self._report)
        self._add(Part.brokers, lambda facts: replace(facts, brokers=tuple(self._brokers(nodes))))
        self._add(Part.own_reports, lambda facts: replace(facts, own_reports=self._own_reports(facts)))
        self._add(Part.topics, lambda facts: replace(facts, topics=tuple(self._topics(seen))))
        self._add(Part.transactions, lambda facts: self._transactions(facts, seen))
        self._add(Part.groups, self._groups)
        return self._facts

    def _add(self, part: Part, ask: Callable[[ClusterFacts], ClusterFacts]) -> None:
        try:
            self._facts = ask(self._facts)
        except (OSError, SparklogError) as error:
            self._facts = replace(self._facts, unknown={**self._facts.unknown, part: str(error)})

    def _report(self, facts: ClusterFacts) -> ClusterFacts:
        request = ClusterReportRequest()
        report = report_of_brokers(self._cluster, request, timeout_ms=REPORT_TIMEOUT_MS)
        return replace(facts, report=report)

    def _brokers(self, nodes: Iterable[Node]) -> Iterable[SeenBroker]:
        for broker in nodes:
            try:
                yield self._broker(broker)
            except KafkaError:
                raise  # it did answer, and refuses
            except (OSError, SparklogError) as error:
                yield SeenBroker(broker_id=broker.id, host=broker.host, silence=str(error) or "no answer")

    def _broker(self, broker: Node) -> SeenBroker:
        described = describe_broker(self._cluster, broker.id, timeout_ms=BROKER_TIMEOUT_MS)
        log_dirs = ClusterChanges(self._cluster).describe_log_dirs(
            broker.id, with_replicas=False, timeout_ms=BROKER_TIMEOUT_MS
        )
        return SeenBroker(
            broker_id=broker.id,
            host=broker.host,
            settings={name: setting.value for name, setting in described.items()},
            log_dirs=log_dirs,
        )

    def _own_reports(self, facts: ClusterFacts) -> Mapping[int, BrokerReportResponse]:
        """Those of the brokers that answer in time; one that does not is silent about its settings, too."""
        found: dict[int, BrokerReportResponse] = {}
        for broker in facts.answering:
            with suppress(OSError):
                found[broker.broker_id] = report_of_broker(
                    self._cluster,
                    broker.broker_id,
                    BrokerReportRequest(wants_metrics=True),
                    timeout_ms=BROKER_TIMEOUT_MS,
                )
        return found

    def _topics(self, seen: ClusterMetadata) -> Iterable[SeenTopic]:
        names = sorted(seen.topics)
        admin = Admin(self._cluster)
        for begin in range(0, len(names), TOPICS_AT_ONCE):
            described = admin.describe_configs(TOPIC_RESOURCE, names[begin : begin + TOPICS_AT_ONCE])
            for name, settings in described.items():
                values = {key: value for key, (value, _) in settings.items()}
                yield SeenTopic(metadata=seen.topics[name], settings=values)

    def _transactions(self, facts: ClusterFacts, seen: ClusterMetadata) -> ClusterFacts:
        """Older than the longest time-out that any broker allows: a coordinator has ended all others."""
        allowed = [int(broker.settings[MAX_TIMEOUT]) for broker in facts.answering]
        led = [
            one
            for topic in seen.topics.values()
            for one in topic.topic_partitions()
            if isinstance(seen.leader(one), KnownLeader)
        ]
        older_than_ms = max(allowed, default=MAX_TIMEOUT_DEFAULT_MS)
        found = hanging_transactions(self._cluster, led, older_than_ms, self._cluster.clock.wall_ms())
        return replace(facts, hanging=tuple(found))

    def _groups(self, facts: ClusterFacts) -> ClusterFacts:
        look = look_at_groups(self._cluster)
        lagging = [group for group in look.groups.values() if group.lag > 0]
        late = self._late(lagging)
        if any(group.late for group in late):
            self._cluster.wait(PROGRESS_WAIT_MS)
            late = [replace(group, moved=self._has_moved(group)) for group in late]
        return replace(facts, groups=tuple(late), groups_unseen=_unseen(look))

    def _late(self, lagging: Iterable[GroupLag]) -> list[LateGroup]:
        """Those of the groups with a partition that is late, or that begins after the committed offset."""
        groups = list(lagging)
        partitions = sorted({one.topic_partition for group in groups for one in group.partitions})
        starts = self._offsets_at(partitions, EARLIEST_TIMESTAMP)
        young = self._offsets_at(partitions, self._cluster.clock.wall_ms() - LATE_MS)
        found = [_late_group(group, starts, young) for group in groups]
        return [group for group in found if group.late or group.deleted]

    def _offsets_at(self, partitions: list[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        seen = self._cluster.metadata(sorted({one.topic for one in partitions}), max_age_ms=1_000)
        deadline = self._cluster.deadline(OFFSETS_TIMEOUT_MS)
        return offsets.ask_once(self._cluster, seen, partitions, timestamp_ms, CONSUMER, deadline)

    def _has_moved(self, group: LateGroup) -> bool:
        """Whether it has committed a later offset in a late partition by now."""
        if not group.late:
            return False
        committed = fetch_committed(GroupAdmin(self._cluster).coordinator(group.group_id))
        return any(
            (now := committed.get(one.topic_partition)) is not None and now.offset > one.committed.offset
            for one in group.late
        )


def facts_without_brokers(
    report: ClusterReportResponse, options: str, now_ms: int, silence: str
) -> ClusterFacts:
    """What the controller alone knows. ``silence`` says why no broker answers."""
    unknown = dict.fromkeys(set(Part) - {Part.report}, "no broker answers")
    return ClusterFacts(options=options, now_ms=now_ms, silence=silence, report=report, unknown=unknown)


def _late_group(
    group: GroupLag, starts: Mapping[TopicPartition, int], young: Mapping[TopicPartition, int]
) -> LateGroup:
    """``young``: the first offset of each partition that is not old; -1 if there is none."""
    query = group.query()
    late, deleted = [], []
    for one in group.partitions:
        place, committed = one.topic_partition, one.committed.offset
        if committed < starts.get(place, -1):
            deleted.append(one)
        first_young = young.get(place, -1)
        if one.lag > 0 and (first_young < 0 or max(committed, starts.get(place, -1)) < first_young):
            late.append(one)
    return LateGroup(
        group_id=group.listing.group_id,
        group_state=group.listing.group_state,
        query=str(query["name"] or query["id"]) if query else "",
        late=tuple(late),
        deleted=tuple(deleted),
    )


def _unseen(look: LagLook) -> dict[str, str]:
    unseen = dict(look.failed)
    if look.left_out:
        unseen[f"{look.left_out} further ones"] = f"more than {len(look.groups) + len(look.failed)} groups"
    return unseen
