"""The origin of a leader's append: Kafka's AppendOrigin, without the values for KRaft and replication."""

from enum import Enum


class AppendOrigin(Enum):
    """Who appends. A follower's appends have no origin, because its leader has checked them."""

    CLIENT = "client"
    """A Produce request: batches of idempotent producers continue a sequence; internal topics are refused."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker, also for a producer's transaction: its batches have no sequences."""
