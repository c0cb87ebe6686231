"""Agreements upon three real brokers: threads that put values at once, and a coordinator that dies."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.client.transactions.agreement import Agreement
from sparklog.model.errors import KafkaError
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with InProcessCluster(tmp_path_factory.mktemp("agreements")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with ClusterClient(cluster.bootstrap_servers, retry_timeout_ms=60_000) as client:
        yield client


def test_of_many_who_put_values_at_once_one_wins_for_all(client):
    with ThreadPoolExecutor(8) as threads:
        told = list(
            threads.map(lambda number: Agreement(client, "at-once").put(str(number).encode()), range(40))
        )
    assert len(set(told)) == 1
    assert Agreement(client, "at-once").value() == told[0]


def test_an_agreement_outlives_its_coordinator(client, cluster):
    assert Agreement(client, "kept").value() is None
    assert Agreement(client, "kept").put(b"first") == b"first"
    coordinator = Coordinator(client, "kept", TRANSACTION_KEY).find().id
    cluster.kill(coordinator)
    try:
        assert Agreement(client, "kept").put(b"second") == b"first"
    finally:
        cluster.revive(coordinator)


def test_a_value_that_is_too_large_is_an_error_that_names_the_agreement(client):
    with pytest.raises(KafkaError, match="agreement 'large'"):
        Agreement(client, "large").put(b"v" * 600_000)
