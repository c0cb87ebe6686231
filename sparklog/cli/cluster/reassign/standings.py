"""The progress of each partition of a plan."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sparklog.cli.cluster.reassign.plan_file import Plan
from sparklog.cli.table import render_table
from sparklog.client.changes import ClusterChanges, OngoingMove
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import ClusterMetadata
from sparklog.model.ids import TopicPartition

METADATA_WAIT_MS: Final = 3_000
POLL_MS: Final = 50

State = Literal["done", "in progress", "not as planned"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition of a plan; ``replicas`` is empty if the partition does not exist."""

    partition: TopicPartition
    planned: tuple[int, ...]
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    move: OngoingMove | None

    @property
    def state(self) -> State:
        if self.move is not None:
            return "in progress" if self.move.target == self.planned else "not as planned"
        return "done" if self.replicas == self.planned else "not as planned"

    @property
    def looks_late(self) -> bool:
        """Whether the replicas are the plan's, followed by others that a finished move removed: brokers
        receive the end of a move shortly after the controller has answered.
        """
        count = len(self.planned)
        return self.move is None and len(self.replicas) > count and self.replicas[:count] == self.planned

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    @property
    def why(self) -> str:
        """Further information about the partition."""
        if self.state == "in progress" and self.move is not None:
            waiting = [one for one in self.move.adding if one not in self.isr]
            return f"brokers {waiting} are not in sync yet" if waiting else "all are in sync, about to end"
        if self.move is not None:
            return f"on its way to {list(self.move.target)}"
        if not self.replicas:
            return "there is no such partition"
        return "" if self.is_done else "nothing moves it"

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "state": self.state,
            "planned_replicas": list(self.planned),
            "replicas": list(self.replicas),
            "isr": list(self.isr),
            "adding_replicas": list(self.move.adding) if self.move else [],
            "removing_replicas": list(self.move.removing) if self.move else [],
        }


def look(cluster: ClusterClient, plan: Plan) -> list[Standing]:
    """The state of each partition of ``plan``, after the queried broker has received all finished moves."""
    deadline = cluster.deadline(METADATA_WAIT_MS)
    while True:
        ongoing = ClusterChanges(cluster).ongoing_moves()
        found = standings_of(plan, ongoing, cluster.metadata(None))
        if deadline.is_over or not any(one.looks_late for one in found):
            return found
        cluster.wait(POLL_MS)


def standings_of(
    plan: Plan, ongoing: Mapping[TopicPartition, OngoingMove], seen: ClusterMetadata
) -> list[Standing]:
    found = []
    for partition, planned in sorted(plan.items()):
        topic = seen.topics.get(partition.topic)
        state = topic.partitions.get(partition.partition) if topic else None
        replicas, isr = (state.replicas, state.isr) if state else ((), ())
        found.append(Standing(partition, planned, replicas, isr, ongoing.get(partition)))
    return found


def show(standings: list[Standing]) -> None:
    """The table, and a summary line."""
    headers = ["TOPIC", "PARTITION", "PLANNED", "REPLICAS", "ISR", "STATE"]
    rows: list[list[object]] = [
        [one.partition.topic, one.partition.partition, one.planned, one.replicas, one.isr, one.state]
        for one in standings
    ]
    if any(one.why for one in standings):
        headers.append("WHY")
        rows = [[*row, one.why] for row, one in zip(rows, standings, strict=True)]
    print(render_table(headers, rows))
    print()
    counts = Counter(one.state for one in standings)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
