"""Quotas over the wire: stored in ZooKeeper, described by every broker, and known to the next controller."""

from contextlib import ExitStack

import pytest

from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.admin import alter_client_quotas as alter
from sparklog.wire.messages.admin import describe_client_quotas as describe
from tests.cluster.test_failover import second_controller
from tests.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture
def cluster():
    with InProcessCluster(brokers=2) as cluster:
        yield cluster


def set_quota(cluster, entity, *, validate_only=False, **values):
    """The answer to the change of one entity's quotas; None removes one."""
    ops = [alter.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()]
    parts = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    request = alter.AlterClientQuotasRequest(
        entries=[alter.EntryData(entity=parts, ops=ops)], validate_only=validate_only
    )
    (entry,) = cluster.client.call_any(request).entries
    return entry


def quotas(cluster, broker, **filters):
    components = [
        describe.ComponentData(entity_type=kind.replace("_", "-"), match_type=match, match=name)
        for kind, (match, name) in filters.items()
    ]
    response = cluster.client.call_broker(broker, describe.DescribeClientQuotasRequest(components=components))
    if response.error_code is not ErrorCode.none:
        return response.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }


def test_a_quota_is_set_and_described_by_every_broker(cluster):
    assert set_quota(cluster, {"user": "alice"}, producer_byte_rate=1_000.0).error_code is ErrorCode.none
    for broker in (1, 2):
        found = quotas(cluster, broker, user=(describe.QuotaMatch.exact, "alice"))
        assert found == {(("user", "alice"),): {"producer_byte_rate": 1_000.0}}
    node = cluster.controller._zookeeper.get("/config/users/alice")
    assert znodes.decode_configs("", node.data) == {"producer_byte_rate": "1000"}


def test_removals_dry_runs_and_refusals_warn_of_nothing(cluster, caplog):
    assert set_quota(cluster, {"user": None}, validate_only=True, producer_byte_rate=1.0).error_code == 0
    assert set_quota(cluster, {"user": None}, producer_byte_rate=None).error_code == 0
    refused = set_quota(cluster, {"user": None}, connection_creation_rate=1.0)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.invalid_request,
        "Invalid configuration key connection_creation_rate",
    )
    assert [(part.entity_type, part.entity_name) for part in refused.entity] == [("user", None)]
    assert "no effect" not in caplog.text
    assert quotas(cluster, 1, group=(describe.QuotaMatch.any, None)) is ErrorCode.unsupported_version


def test_the_next_controller_has_the_quotas(cluster):
    set_quota(cluster, {"user": "alice", "client-id": None}, consumer_byte_rate=7.0)
    with ExitStack() as after:
        former, cluster.controller = cluster.controller, second_controller(cluster, after)
        former.stop()
        of_alice = {(("user", "alice"), ("client-id", None)): {"consumer_byte_rate": 7.0}}
        until(lambda: quotas(cluster, 2) == of_alice)
        assert (
            set_quota(cluster, {"user": "alice", "client-id": None}, consumer_byte_rate=8.0).error_code == 0
        )
        until(lambda: quotas(cluster, 1) != of_alice)
