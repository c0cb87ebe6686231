"""A cluster that closes its nodes in a real ZooKeeper, over TLS: strangers read some, and change none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparklog.core.controller.state.node_acls import ROOTS, is_confidential
from sparklog.model.zookeeper import Unread
from sparklog.model.zookeeper_access import DIGEST, WORLD, Permissions
from sparklog.testing import InProcessCluster
from sparklog.zookeeper.configured_session import tls_of
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from sparklog_runtime.start.prepared_zookeeper import prepare_zookeeper
from tests.certificates import Authority
from tests.closed_files import write_closed

pytestmark = pytest.mark.integration

TIMEOUT_MS = 15_000
LOGINS = {
    "listeners": "SASL_PLAINTEXT://:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.plain.without.tls": "true",
}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    secrets = tmp_path / "secrets.properties"
    write_closed(secrets, "zookeeper=broker:right\nbroker=of-the-broker\n")
    authority = Authority(tmp_path / "tls")
    password = f"${{file:{secrets}:broker}}"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        **LOGINS,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{module} required username=broker password="{password}" user_broker="{password}";'
        ),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker",
        "zookeeper.set.acl": "true",
        "zookeeper.digest": f"${{file:{secrets}:zookeeper}}",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(authority.issue("zookeeper", "127.0.0.1")),
        "zookeeper.ssl.truststore.location": str(authority.file),
    }


def all_paths(zookeeper: KazooAdmin, path: str = "/") -> Iterator[str]:
    """As far as a stranger sees."""
    yield path
    (names,) = zookeeper.children_many([path])
    if not isinstance(names, Unread):
        for name in names:
            yield from all_paths(zookeeper, f"{path.rstrip('/')}/{name}")


def test_a_cluster_that_closes_its_nodes_serves_and_starts_again(
    settings: dict[str, str], tmp_path: Path
) -> None:
    cluster = InProcessCluster(tmp_path / "cluster", brokers=2, zookeeper="real", settings=settings)
    with cluster:
        cluster.create_topic("events", partitions=2)
        cluster.produce("events", ["one"])
        cluster.kill(2)
        cluster.wait_for_isr("events", 1)
        cluster.revive(2)
        cluster.wait_for_isr("events", 2)
        prepare_zookeeper(cluster.zookeeper, cluster.config, is_own=True, warn=pytest.fail)
        tls = tls_of(cluster.config.zookeeper)
        with KazooAdmin(cluster.zookeeper, TIMEOUT_MS, tls=tls) as stranger:
            stranger.start(TIMEOUT_MS)
            paths = list(all_paths(stranger))
            found = dict(zip(paths, stranger.acls(paths), strict=True))
    assert {"/" + path.split("/")[1] for path in paths} - {"/", "/zookeeper"} <= ROOTS
    assert {"/controller", "/brokers/ids/1", "/brokers/topics/events/partitions/1/state"} < set(paths)
    hidden = {path for path, acl in found.items() if acl is Unread.CLOSED}
    assert hidden == {"/config/users", "/config/brokers", "/login_secret"}
    assert all(is_confidential(path) for path in hidden)
    for path, acl in found.items():
        if path not in hidden and path != "/zookeeper/config":
            assert isinstance(acl, frozenset)
            granted = {one.scheme: one.permissions for one in acl}
            assert granted == {WORLD: Permissions.READ, DIGEST: Permissions.ALL}, path
    with cluster:
        assert len(cluster.consume("events", at_least=1)) == 1
