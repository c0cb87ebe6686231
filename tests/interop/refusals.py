"""What a client says when it is told no: the error that a case expects, or the client's own name for it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.interop.clients import JAVA_RELEASES
from tests.interop.driver import RefusedError

OWN_NAMES: dict[tuple[str, str], tuple[str, ...]] = {
    ("kafka-python 3", "INVALID_TOPIC_EXCEPTION"): ("ValueError",),
    ("kafka-python 2", "INVALID_TOPIC_EXCEPTION"): ("KafkaTimeoutError",),
    ("aiokafka", "INVALID_TOPIC_EXCEPTION"): ("UNKNOWN_TOPIC_OR_PARTITION",),
    ("kafka-go", "INVALID_TOPIC_EXCEPTION"): ("UNKNOWN_TOPIC_OR_PARTITION",),
    # a member that was told by a heartbeat before it commits
    **{
        (f"Java {release}", "UNKNOWN_MEMBER_ID"): ("CommitFailedException", "REBALANCE_IN_PROGRESS")
        for release in JAVA_RELEASES
    },
    ("kafka-python 3", "UNKNOWN_MEMBER_ID"): ("CommitFailedError",),
    ("kafka-python 2", "UNKNOWN_MEMBER_ID"): ("CommitFailedError",),
    ("aiokafka", "UNKNOWN_MEMBER_ID"): ("CommitFailedError",),
    # a member that has joined again before it commits (1 of 4 runs on Kafka)
    ("confluent-kafka", "UNKNOWN_MEMBER_ID"): ("ILLEGAL_GENERATION",),
    # librdkafka tells of fencing by an error that ends the consumer; aiokafka commits without its
    # instance id; a heartbeat may have told a Java member
    ("confluent-kafka", "FENCED_INSTANCE_ID"): ("_FATAL",),
    ("aiokafka", "FENCED_INSTANCE_ID"): ("CommitFailedError",),
    **{(f"Java {release}", "FENCED_INSTANCE_ID"): ("CommitFailedException",) for release in JAVA_RELEASES},
    ("confluent-kafka", "PRODUCER_FENCED"): ("_FENCED",),
    ("aiokafka", "PRODUCER_FENCED"): ("ProducerFenced",),
    # it drops what it would commit, without a word, if its heartbeat learns first that it was evicted
    ("sarama", "UNKNOWN_MEMBER_ID"): ("NOT_CONFIRMED",),
    ("kafka-python 2", "TOPIC_AUTHORIZATION_FAILED"): ("KafkaTimeoutError",),
    ("kafka-go", "TOPIC_AUTHORIZATION_FAILED"): ("UNKNOWN_TOPIC_OR_PARTITION",),
    ("kafkajs", "GROUP_AUTHORIZATION_FAILED"): ("KafkaJSGroupCoordinatorNotFound",),
    ("kafkajs", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"): ("KafkaJSGroupCoordinatorNotFound",),
    # most clients take a refused login for a broker that cannot be reached
    ("confluent-kafka", "SASL_AUTHENTICATION_FAILED"): ("_AUTHENTICATION",),
    ("kafka-python 3", "SASL_AUTHENTICATION_FAILED"): ("KafkaTimeoutError",),
    ("kafka-python 2", "SASL_AUTHENTICATION_FAILED"): ("NoBrokersAvailable",),
    ("aiokafka", "SASL_AUTHENTICATION_FAILED"): ("KafkaConnectionError",),
    ("sarama", "SASL_AUTHENTICATION_FAILED"): ("ErrOutOfBrokers",),
    ("kafkajs", "SASL_AUTHENTICATION_FAILED"): ("KafkaJSSASLAuthenticationError",),
    **{
        (f"Java {one}", "UNKNOWN_AUTHORITY"): ("SslAuthenticationException", "INVALID_CONFIG")
        for one in JAVA_RELEASES
    },
    ("confluent-kafka", "UNKNOWN_AUTHORITY"): ("_SSL",),
    ("kafka-python 3", "UNKNOWN_AUTHORITY"): ("KafkaTimeoutError",),
    ("kafka-python 2", "UNKNOWN_AUTHORITY"): ("SSLCertVerificationError",),
    ("aiokafka", "UNKNOWN_AUTHORITY"): ("KafkaConnectionError",),
    ("sarama", "UNKNOWN_AUTHORITY"): ("ErrOutOfBrokers",),
    ("kafkajs", "UNKNOWN_AUTHORITY"): ("KafkaJSConnectionError",),
    # EndTxn 0 and 1 have no other error for it
    ("Java 2.1.1", "PRODUCER_FENCED"): ("INVALID_PRODUCER_EPOCH",),
    ("kafkajs", "PRODUCER_FENCED"): ("INVALID_PRODUCER_EPOCH",),
}
"""(client, error of Kafka's table) -> what the client says instead, always or where it refuses by itself."""


@contextmanager
def refused(client: str, error: str) -> Iterator[None]:
    """The block is refused with ``error``, and with nothing else."""
    with pytest.raises(RefusedError) as refusal:
        yield
    assert refusal.value.error in (error, *OWN_NAMES.get((client, error), ())), str(refusal.value)
