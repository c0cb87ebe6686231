"""Cases that fail for a reason that a user would accept. They are expected to fail; the table says why."""

_KAFKA_GO_EMPTY = "kafka-go hands an empty key or header on as null"
_KAFKA_GO_LATE_TOPIC = (
    "kafka-go's member stays without partitions if the topic comes between the assignment and its first "
    "look at the partitions; with Apache Kafka 3.9.1 in 6 of 12 tries, with sparklog in 4 of 12"
)
_KAFKA_GO_SUBSCRIPTION = "kafka-go cannot read a subscription of version 3, which librdkafka sends"

OF_CLIENTS: dict[tuple[str, str], str] = {
    ("null_and_empty_keys_and_values", "kafka-go"): _KAFKA_GO_EMPTY,
    ("headers", "kafka-go"): _KAFKA_GO_EMPTY,
    ("the_cluster", "kafka-python 3"): "kafka-python 3 cannot read DescribeCluster 0, all that Kafka 3.6 has",
    ("times_of_the_broker", "kafka-go"): "kafka-go shows the producer's time where the broker's counts",
    ("a_group_is_listed_and_described", "kafka-go"): _KAFKA_GO_SUBSCRIPTION,
    ("a_subscription_to_a_topic_that_comes_later", "kafka-go"): _KAFKA_GO_LATE_TOPIC,
    ("a_member_beside_one_of_librdkafka", "kafka-go"): _KAFKA_GO_SUBSCRIPTION,
    ("a_subscription_by_pattern", "kafkajs"): "kafkajs looks for topics of a pattern when it subscribes only",
    ("a_subscription_to_a_topic_that_comes_later", "kafkajs"): (
        "kafkajs subscribes to topics that exist only (UNKNOWN_TOPIC_OR_PARTITION)"
    ),
    ("no_request_of_a_producer_comes_over_two_connections_in_turns", "kafkajs"): (
        "kafkajs gives up offsets of a transaction when their connection ends"
    ),
    **{
        ("rules_of_topics", f"{client}-read"): (
            "the client says nothing of an assigned partition whose topic it may not see, and waits"
        )
        for client in ("confluent-kafka", "kafka-python 3", "kafka-python 2", "aiokafka")
    },
    ("an_assignor", "kafka-python 2-sticky"): "the sticky assignor of kafka-python 2.0.2 fails (TypeError)",
}
"""(case without its ``test_``, client or parameter) -> why the client does not do it, on Kafka neither."""

BY_CHANCE = (_KAFKA_GO_LATE_TOPIC,)
"""Reasons that hold in some tries only, on Kafka too: a try that passes is no news."""

OF_OURS: dict[tuple[str, str], str] = {
    ("kafka_replica_verification", ""): (
        "the tool of 3.9 sends Fetch 17 without asking which versions are served, and we serve those of 3.6"
    ),
}
"""(case without its ``test_``, client or parameter) -> how we differ from Kafka."""
