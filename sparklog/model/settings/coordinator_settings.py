"""Settings of coordinators: of the internal topics that they write, and of how they load and append."""

from collections.abc import Mapping
from typing import Final

from sparklog.model.settings.setting import INT_MAX, LONG_MAX, Setting

COORDINATOR_SETTINGS: Final = (
    Setting("offsets.topic.num.partitions", "int", 50,
            "Partitions of `__consumer_offsets` when it is created: by `sparklog start` and "
            "`sparklog submit`, or else by the first request for a coordinator.",
            1, 100_000),
    Setting("offsets.topic.replication.factor", "int", 3,
            "Replicas of `__consumer_offsets`, which is not created with fewer live brokers. "
            "`sparklog start`, `sparklog submit` and test clusters: one a broker, up to 3.", 1, 1_000),
    Setting("offsets.topic.segment.bytes", "int", 104_857_600,
            "Size at which a segment of `__consumer_offsets` is rolled.", 14, INT_MAX),
    Setting("offsets.topic.compression.codec", "int", 0,
            "Codec of what coordinators of groups write: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
            0, 4),
    Setting("offsets.commit.timeout.ms", "int", 5_000,
            "Longest wait of a coordinator for the replicas to have what it wrote, and of a request for its "
            "turn.", 1, INT_MAX),
    Setting("offsets.commit.required.acks", "int", -1,
            "Coordinators wait for all replicas in sync; other values are not acted on.", -1, 3,
            not_yet=("0", "1", "2", "3")),
    Setting("offsets.load.buffer.size", "int", 5_242_880,
            "Bytes that a new coordinator reads at a time while it loads.", 1, INT_MAX),
    Setting("transaction.state.log.num.partitions", "int", 50,
            "Partitions of `__transaction_state` when it is created: by `sparklog start` and "
            "`sparklog submit`, or else by the first request for a coordinator.",
            1, 100_000),
    Setting("transaction.state.log.replication.factor", "int", 3,
            "Replicas of `__transaction_state`, which is not created with fewer live brokers. "
            "`sparklog start`, `sparklog submit` and test clusters: one a broker, up to 3.", 1, 1_000),
    Setting("transaction.state.log.min.isr", "int", 2,
            "`min.insync.replicas` of `__transaction_state` when it is created. `sparklog start`, "
            "`sparklog submit` and test clusters take one less than its replication factor, and at least 1.",
            1, 1_000),
    Setting("transaction.state.log.segment.bytes", "int", 104_857_600,
            "Size at which a segment of `__transaction_state` is rolled.", 14, INT_MAX),
    Setting("transaction.max.timeout.ms", "int", 900_000,
            "The longest `transaction.timeout.ms` that a producer may ask for.", 1, INT_MAX),
    Setting("transactional.id.expiration.ms", "int", 604_800_000,
            "A transactional id without an open transaction is forgotten this long after its last change.",
            1, INT_MAX),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", "int", 3_600_000,
            "How often to look for transactional ids that have expired.", 1, INT_MAX),
    Setting("write.app.id.expiration.ms", "int", 31_536_000_000,
            "The last committed version of an app id (a streaming query's, or `txnAppId`) is forgotten this "
            "long after its last atomic write. Sparklog's own.", 1, LONG_MAX),
)  # fmt: skip
"""With Kafka's names and defaults, those of atomic writes excepted."""

REPLICATION_FACTOR_MAX: Final = 3


def of_a_start(settings: Mapping[str, str], brokers: int) -> dict[str, str]:
    """``settings`` for a cluster that is started with ``brokers`` brokers: the replication factor of its
    internal topics is the lesser of 3 and that number, and ``min.insync.replicas`` of the one of transactions
    leaves room for the death of one broker, if there are two, unless ``settings`` say another.
    """
    factor = max(1, min(REPLICATION_FACTOR_MAX, brokers))
    return {
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(max(1, factor - 1)),
        **settings,
    }
