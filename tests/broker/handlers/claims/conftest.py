"""Two brokers, whose groups do not wait for further members."""

import pytest

from sparklog.testing import InProcessCluster
from tests.broker.handlers.transactions.conftest import Wire

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=2, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def wire(cluster):
    wire = Wire(cluster)
    yield wire
    wire.close()
