"""Metrics of a broker's coordinators (docs/metrics.md), read from their shards without locks."""

from sparklog.broker.coordination.coordinators import CoordinatorShards
from sparklog.broker.coordination.kinds import KINDS, CoordinatorKind
from sparklog.core.coordinator.shard import Phase
from sparklog.model.metric import Metric, gauge


def coordinator_metrics(coordinators: CoordinatorShards) -> list[Metric]:
    shards = [host.shard for host in coordinators.hosts()]
    return [
        gauge(
            "sparklog_coordinator_shards_active",
            "Partitions of internal topics whose coordinator here serves requests.",
            sum(shard.phase is Phase.active for shard in shards),
        ),
        gauge(
            "sparklog_coordinator_shards_loading",
            "Partitions of internal topics whose coordinator here still reads its log.",
            sum(shard.phase is Phase.loading for shard in shards),
        ),
        gauge(
            "sparklog_coordinator_last_load_milliseconds",
            "How long the last load took, from the election to the first request that could be served.",
            coordinators.loads.last_load_ms,
        ),
        gauge(
            "sparklog_coordinator_appends_in_flight",
            "Batches of coordinators here that wait for replicas.",
            sum(shard.has_append_in_flight for shard in shards),
        ),
        gauge(
            "sparklog_coordinator_requests_held",
            "Requests that wait for a write of their group, or for ZooKeeper to confirm a leader epoch.",
            sum(shard.requests_held for shard in shards),
        ),
        gauge(
            "sparklog_coordinator_writes_in_doubt",
            "Writes of coordinators here that were not replicated in time and may still be.",
            sum(shard.writes_in_doubt for shard in shards),
        ),
        *(metric for kind in KINDS.values() for metric in _of_kind(kind, coordinators)),
    ]


def _of_kind(kind: CoordinatorKind, coordinators: CoordinatorShards) -> list[Metric]:
    machines = [
        host.shard.machine for host in coordinators.hosts() if host.topic_partition.topic == kind.topic
    ]
    return kind.metrics(machines, coordinators.counts(kind.topic))
