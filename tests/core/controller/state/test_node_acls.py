"""Which nodes others may read."""

import pytest

from sparklog.core.controller.state.node_acls import ROOTS, closed_acl
from sparklog.model.zookeeper_access import CREATOR_ALONE, CREATOR_WRITES


@pytest.mark.parametrize(
    "path",
    [
        "/config/users",
        "/config/users/alice",
        "/config/users/alice/clients/app",
        "/config/brokers",
        "/config/brokers/<default>",
        "/login_secret",
    ],
)
def test_credentials_are_the_clusters_alone(path: str) -> None:
    assert closed_acl(path) == CREATOR_ALONE


@pytest.mark.parametrize(
    "path",
    ["/", "/config", "/config/topics/users", "/config/users.of.topics", "/controller"],
)
def test_others_read_the_rest(path: str) -> None:
    assert closed_acl(path) == CREATOR_WRITES


def test_the_roots_are_the_highest_nodes() -> None:
    assert {"/controller", "/brokers", "/config", "/kafka-acl", "/login_secret", "/remote_logs"} <= ROOTS
    assert all(path.count("/") == 1 for path in ROOTS)
