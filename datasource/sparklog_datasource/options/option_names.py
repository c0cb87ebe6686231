"""The names of the options of reads and of writes, beside those of Kafka's clients.

A view has one set of options for both sides (``subscribe`` for its reads, ``topic`` for its writes).
Each side therefore passes over the names of the other.
"""

from typing import Final

BOOTSTRAP: Final = "kafka.bootstrap.servers"
BOOTSTRAP_SHORT: Final = "bootstrap.servers"

ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"
PATTERN: Final = "subscribePattern"
STRATEGIES: Final = (ASSIGN, SUBSCRIBE, PATTERN)

ENDING_OPTIONS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

READ_OPTIONS: Final = (
    BOOTSTRAP, *STRATEGIES, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets",
    "startingOffsetsByTimestampStrategy", *ENDING_OPTIONS, "failOnDataLoss", "minPartitions",
    "maxRecordsPerPartition", "bytesPerTask", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "columns", "includeHeaders", "includeMetadata", "keyFormat", "keyFormat.errors",
    "valueFormat", "valueFormat.errors", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "reportOffsets", "reportAs", "where",
)  # fmt: skip

CREATE_TOPIC: Final = "createTopic"
CREATE_PARTITIONS: Final = "createTopic.partitions"
CREATE_REPLICATION: Final = "createTopic.replicationFactor"
CREATE_KEY: Final = "createTopic.key"
CREATE_TIMESTAMP: Final = "createTopic.timestamp"
MERGE_SCHEMA: Final = "mergeSchema"

WRITE_OPTIONS: Final = (
    BOOTSTRAP, "topic", "includeHeaders", "delivery", "txnAppId", "txnVersion",
    CREATE_TOPIC, CREATE_PARTITIONS, CREATE_REPLICATION, CREATE_KEY, CREATE_TIMESTAMP,
    MERGE_SCHEMA,
)  # fmt: skip
