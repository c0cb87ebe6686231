"""An operator: after the last fault, it decides what no broker may decide.

An uncommitted batch rots at a leader that is alone in the ISR. The leader cannot serve the records after
that batch, so no replica enters the ISR, and with too few replicas in it nothing is committed. Which log
goes on is an operator's choice, because records acknowledged with acks=1 may be lost by it: stop that
broker, demand an unclean election if no replica is elected without, start it again (docs/operating.md,
"A damaged batch").

An election lost the marker of a transaction, and said that it may: the operator aborts what hangs since
(``hanging``).
"""

from typing import Final

from simulation.cluster import Cluster
from simulation.operators.hanging import HangingTransactions
from simulation.schedule import US_PER_MS
from simulation.truth import PartitionTruth
from sparklog.model.ids import BrokerId, TopicPartition

PATIENCE_MS: Final = 5_000
"""How long a partition may help itself first."""


class Operator:
    """Does so in a run; ``is_busy`` until the brokers that it stopped run again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._hanging = HangingTransactions(cluster)
        self._seen_us: dict[TopicPartition, int] = {}
        self._stopped: dict[TopicPartition, str] = {}
        """The hosts of damaged leaders, until another replica leads."""

    @property
    def is_busy(self) -> bool:
        return bool(self._stopped)

    def look(self) -> None:
        """Do what is to be done next, if anything is."""
        self._hanging.look()
        truths, now_us = self._cluster.witness.truths, self._cluster.schedule.now_us
        for topic_partition, host in list(self._stopped.items()):
            state = truths[topic_partition].state
            if state is not None and not state.has_leader:
                self._cluster.administrator.elect_unclean(truths[topic_partition])
            elif state is not None and state.leader != self._cluster.machines[host].broker_id:
                self._start(topic_partition, host)
        for topic_partition, truth in truths.items():
            damaged = self._damaged_alone(truth)
            if damaged is None:
                self._seen_us.pop(topic_partition, None)
            elif now_us - self._seen_us.setdefault(topic_partition, now_us) >= PATIENCE_MS * US_PER_MS:
                self._stop(topic_partition, damaged)

    def _damaged_alone(self, truth: PartitionTruth) -> str | None:
        """The host where it leads, alone in sync, and is damaged where nothing was committed."""
        state = truth.state
        if state is None or state.isr != (state.leader,) or len(state.replicas) == 1:
            return None
        host = self._host_of(state.leader)
        replicas = self._cluster.brokers[host].replicas if self._cluster.is_up(host) else None
        partition = None if replicas is None else replicas.get(truth.topic_partition)
        damage = None if partition is None else partition.log.corruption
        return host if damage is not None and damage.offset >= truth.committed_end else None

    def _host_of(self, broker_id: BrokerId) -> str:
        return next(
            host for host, machine in self._cluster.machines.items() if machine.broker_id == broker_id
        )

    def _stop(self, topic_partition: TopicPartition, host: str) -> None:
        what = f"{topic_partition} is damaged behind what is committed"
        self._cluster.story.tell("OPERATOR", f"stops {host}: {what}")
        self._stopped[topic_partition] = host
        self._cluster.seats[host].down += 1
        self._cluster.kill(host, is_reported=True)

    def _start(self, topic_partition: TopicPartition, host: str) -> None:
        self._cluster.story.tell("OPERATOR", f"starts {host}: {topic_partition} has another leader")
        del self._stopped[topic_partition]
        self._cluster.seats[host].down -= 1
        self._cluster.launch(host)
