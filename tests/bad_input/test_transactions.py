"""Transactions: what librdkafka's user is told where one cannot go on, and what a stray batch is answered."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer

from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster
from tests.bad_input.test_kafka_client import TRANSACTIONAL, answer, told

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

SECONDS = 20


@contextmanager
def silent(servers: str, transactional_id: str, **settings: Any) -> Iterator[Producer]:
    names = {name.replace("_", "."): setting for name, setting in settings.items()}
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "log_level": 0,
            "error_cb": lambda error: None,
            **names,
        }
    )
    yield producer
    producer.purge()


def test_another_producer_has_taken_the_transactional_id(
    brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    servers = brokers.bootstrap_servers
    with silent(servers, "payments") as first, silent(servers, "payments") as second:
        first.init_transactions(SECONDS)
        first.begin_transaction()
        first.produce("t", b"never seen", partition=0)
        first.flush(SECONDS)
        second.init_transactions(SECONDS)
        error = refused(lambda: first.commit_transaction(SECONDS))
    case(
        "a second producer with the same `transactional.id`",
        "Kafka client",
        error,
        "one id for each running producer; the first one's transaction was aborted",
    )


def test_a_transaction_was_open_for_too_long(brokers: InProcessCluster, case: Case, refused: Refused) -> None:
    with silent(brokers.bootstrap_servers, "slow", transaction_timeout_ms=1_000) as slow:
        slow.init_transactions(SECONDS)
        slow.begin_transaction()
        error = refused(lambda: _write_on(slow))
    sees = str(error)
    case(
        "a transaction that is open for longer than `transaction.timeout.ms`",
        "Kafka client",
        error,
        "commit sooner, or raise it; begin again with a new producer",
        {
            found[0]: instead
            for pattern, instead in (
                (r"broker \d", "broker 1"),
                (r"Id:\d+", "Id:1000"),
                (r"base seq \d+", "base seq 500"),
            )
            if (found := re.search(pattern, sees))
        },
    )


def _write_on(producer: Producer) -> None:
    """One message after another, until the producer is told that it may not."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        producer.produce("t", b"never seen", partition=0)
        producer.flush(SECONDS)


def test_a_transaction_s_longest_time_is_above_the_broker_s(
    brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    with silent(brokers.bootstrap_servers, "patient", transaction_timeout_ms=1_000_000) as patient:
        error = refused(lambda: patient.init_transactions(SECONDS))
    case(
        "`transaction.timeout.ms` above the brokers' `transaction.max.timeout.ms`",
        "Kafka client",
        error,
        "choose less, or raise that",
        {f"TxnCoordinator/{number}": "TxnCoordinator/1" for number in brokers.brokers},
    )


def test_a_batch_for_a_partition_that_is_not_in_the_transaction_is_refused(
    brokers: InProcessCluster, connection: Connection, case: Case
) -> None:
    with silent(brokers.bootstrap_servers, "stray") as producer:
        producer.init_transactions(SECONDS)
        partition = answer(connection, TRANSACTIONAL, transactional_id="stray")
    case(
        "a batch of a producer that does not have the `transactional.id` it names",
        "produce response",
        told(partition),
        "mend the client: InitProducerId gives its id and epoch",
    )
