"""The rate of an address, set as a quota, binds a broker while it runs."""

import socket

import pytest

from sparklog.client.security.quota_admin import QuotaAdmin
from sparklog.model.quota_entity import QuotaEntity
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

HERE = QuotaEntity((("ip", "127.0.0.1"),))


def is_closed(port: int) -> bool:
    """Whether a new connection is closed by the broker before anything was sent."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(2)
        try:
            return client.recv(1) == b""
        except TimeoutError:
            return False


def test_an_address_that_opens_connections_too_fast_is_closed_and_not_for_ever() -> None:
    with InProcessCluster(brokers=1) as cluster:
        admin, port = QuotaAdmin(cluster.client), cluster.brokers[1].node.port
        admin.put(HERE, {"connection_creation_rate": 0.0})
        until(lambda: is_closed(port), "the rate to bind")
        admin.remove(HERE, ["connection_creation_rate"])
        until(lambda: not is_closed(port), "the rate to be gone")
        cluster.create_topic("t")
