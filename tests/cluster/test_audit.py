"""The audit of brokers and of a controller, as a secured cluster writes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.client.security.user_admin import UserAdmin
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    root = tmp_path_factory.mktemp("audited")
    settings = {"audit.log.dir": str(root / "audit")}
    with InProcessCluster(root, brokers=2, secure=True, settings=settings) as running:
        yield running


def lines(cluster: InProcessCluster, **wanted: Any) -> list[dict[str, Any]]:
    found = []
    for path in Path(cluster.root / "audit").iterdir():
        found += [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


def line(cluster: InProcessCluster, **wanted: Any) -> dict[str, Any]:
    until(lambda: lines(cluster, **wanted) != [], f"a line with {wanted}")
    return lines(cluster, **wanted)[0]


def test_an_act_is_written_by_who_decides_it_with_its_client(cluster) -> None:
    cluster.create_topic("audited", configs={"retention.ms": "60000"})
    found = line(cluster, api="CreateTopics", subjects=["audited"])
    assert (found["event"], found["server"], found["principal"]) == ("act", "controller", "User:admin")
    assert (found["client_host"], found["client_id"], found["errors"]) == (
        "127.0.0.1",
        "sparklog-testing",
        [],
    )
    cluster.produce("audited", ["a", "b"])
    ClusterChanges(cluster.client).delete_records({TopicPartition("audited", 0): 1})
    trimmed = line(cluster, api="DeleteRecords", subjects=["audited-0 before 1"])
    assert trimmed["server"].startswith("broker-")
    assert len(lines(cluster, api="CreateTopics", subjects=["audited"])) == 1


def test_a_denial_is_written_by_broker_and_controller_each_time(cluster) -> None:
    mallory = cluster.as_user("mallory")
    cluster.create_topic("closed")
    for _ in range(2):
        with pytest.raises(SparklogError, match="AUTHORIZATION_FAILED"):
            mallory.produce("closed", ["x"])
    found = line(cluster, event="denial", principal="User:mallory", resource_name="closed")
    assert found["resource_type"] == "TOPIC"
    assert found["server"].startswith("broker-")
    until(lambda: len(lines(cluster, event="denial", resource_name="closed")) >= 2, "a line for each denial")
    with pytest.raises(SparklogError, match="AUTHORIZATION_FAILED"):
        mallory.create_topic("not-mine")
    assert line(cluster, event="denial", server="controller", api="CreateTopics")["operation"] == "CREATE"
    assert lines(cluster, event="act", principal="User:mallory") == []


def test_what_a_list_leaves_out_is_no_denial(cluster) -> None:
    cluster.create_topic("unseen")
    peeping = cluster.as_user("peeping")
    assert list(peeping.admin.list_topics()) == []
    with pytest.raises(SparklogError):
        peeping.create_topic("to-see-that-lines-are-written")
    line(cluster, event="denial", principal="User:peeping", api="CreateTopics")
    assert [one["api"] for one in lines(cluster, event="denial", principal="User:peeping")] == [
        "CreateTopics"
    ]


def test_no_password_or_salt_is_in_the_audit(cluster) -> None:
    alice = cluster.as_user("audited-alice")
    assert line(cluster, api="AlterUserScramCredentials")["subjects"] != []
    password = alice.properties["sasl.jaas.config"].rpartition("password=")[2].strip('";')
    texts = [path.read_text() for path in Path(cluster.root / "audit").iterdir()]
    assert not any(password in text or "salt" in text for text in texts)
    UserAdmin(cluster.client).delete("audited-alice", ["SCRAM-SHA-512"])
    line(cluster, subjects=["-'audited-alice': SCRAM-SHA-512"])
