"""Transactions that no coordinator will end, and that hold readers back for ever. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity

NAME: Final = "transactions"
SHOWN_MAX: Final = 10
MS_PER_MINUTE: Final = 60_000


def examine_transactions(facts: ClusterFacts) -> Iterator[Finding]:
    for one in facts.hanging[:SHOWN_MAX]:
        (topic, partition), producer = one.topic_partition, one.producer
        minutes = max(0, facts.now_ms - producer.last_timestamp_ms) // MS_PER_MINUTE
        yield Finding(
            NAME,
            Severity.grave,
            f"partition {topic}-{partition}",
            f"a transaction of producer {producer.producer_id} has been open since offset "
            f"{producer.open_since}; its last batch is {minutes} min old, and no coordinator knows it",
            "readers of committed records stand still there, and compaction too",
            f"sparklog transactions abort --topic {topic} --partition {partition} "
            f"--start-offset {producer.open_since} {facts.options}",
        )
    left = len(facts.hanging) - SHOWN_MAX
    if left > 0:
        yield Finding(
            NAME,
            Severity.grave,
            "cluster",
            f"{left} more transactions hang",
            "as above",
            f"sparklog transactions find-hanging {facts.options}",
        )


TRANSACTIONS: Final = Check(
    NAME, (Part.transactions,), "no transaction hangs in a partition", examine_transactions
)
