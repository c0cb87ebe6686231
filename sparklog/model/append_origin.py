"""On whose behalf a leader appends: Kafka's AppendOrigin, without what KRaft and replication need."""

from enum import Enum


class AppendOrigin(Enum):
    """A follower's appends have no origin: its leader has judged them."""

    CLIENT = "client"
    """A Produce request: batches of idempotent producers continue a sequence, internal topics are closed."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker, also for a producer's transaction: it numbers no batches."""
