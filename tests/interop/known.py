"""Cases that fail for a reason that a user would accept. They are expected to fail; the table says why."""

_KAFKA_GO_EMPTY = "kafka-go hands an empty key or header on as null"

OF_CLIENTS: dict[tuple[str, str], str] = {
    ("null_and_empty_keys_and_values", "kafka-go"): _KAFKA_GO_EMPTY,
    ("headers", "kafka-go"): _KAFKA_GO_EMPTY,
    ("the_cluster", "kafka-python 3"): "kafka-python 3 cannot read DescribeCluster 0, all that Kafka 3.6 has",
    ("times_of_the_broker", "kafka-go"): "kafka-go shows the producer's time where the broker's counts",
}
"""(case without its ``test_``, client or parameter) -> why the client does not do it, on Kafka neither."""

OF_OURS: dict[tuple[str, str], str] = {}
"""(case without its ``test_``, client or parameter) -> how we differ from Kafka."""
