"""Whose a transaction is, by its id and its producer id."""

import pytest

from sparklog.cli.coordinators.transactions.owners import app_id_of, kind_of, owner_of
from sparklog.model.write_ids import FIRST_PRODUCER_ID


@pytest.mark.parametrize(
    ("name", "kind", "owner"),
    [
        ("query-7d0c", "streaming query", "the streaming query with id 7d0c"),
        ("app-nightly-1", "txnAppId", "the batch writes with txnAppId=nightly-1"),
        ("write-33", "batch write", "one batch write, which names no txnAppId"),
        ("else", "atomic write", None),
    ],
)
def test_a_write_is_named_by_its_query_or_its_app_id(name: str, kind: str, owner: str | None) -> None:
    assert kind_of(name, FIRST_PRODUCER_ID) == kind
    assert owner_of(name, FIRST_PRODUCER_ID) == owner
    assert app_id_of(name, FIRST_PRODUCER_ID) == name


def test_a_transactional_id_of_a_kafka_client_is_no_write_whatever_its_name() -> None:
    assert kind_of("query-7d0c", 4) == "Kafka client"
    assert (owner_of("query-7d0c", 4), app_id_of("query-7d0c", 4)) == (None, None)
