"""How clients reach secured clusters in a benchmark, with how many rules, and when a quota has held."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.clusters import Kafka, Sparklog
from bench.scale import QUICK
from bench.secured_clusters import (
    IN_THE_CLEAR,
    MECHANISM,
    USER,
    as_user,
    over_tls,
    security_files,
    tls_cluster,
)
from bench.security import LOAD, quota_row, rules_of

from sparklog.client.security.security_properties import login_settings_of, tls_settings_of
from sparklog.core.security.acl import ResourceType

FILES = Path("/somewhere/security")


def test_a_client_over_tls_trusts_the_authority_and_shows_nothing() -> None:
    access = over_tls(FILES)
    assert access.librdkafka == {"security.protocol": "ssl", "ssl.ca.location": str(FILES / "ca.pem")}
    assert access.spark()["kafka.ssl.truststore.location"] == str(FILES / "ca.pem")
    assert IN_THE_CLEAR.spark() == {}


def test_properties_of_a_user_are_those_of_our_own_clients_too(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("of an authority")
    properties = as_user(tmp_path).java
    login = login_settings_of(properties)
    assert tls_settings_of(properties) is not None
    assert login is not None
    assert login.mechanism == MECHANISM


@pytest.mark.parametrize("kind", [Sparklog, Kafka])
def test_a_cluster_over_tls_is_of_the_kind_that_was_asked_for(kind: type[Sparklog] | type[Kafka]) -> None:
    cluster = tls_cluster(kind, FILES)
    try:
        assert type(cluster) is kind
    finally:
        cluster.stop()


def test_the_files_are_those_of_the_command_and_go_with_the_benchmark() -> None:
    with security_files() as files:
        assert {"ca.pem", "broker.pem", "server.properties", "admin.properties"} <= {
            one.name for one in files.iterdir()
        }
    assert not files.exists()


@pytest.mark.parametrize("count", [10, 500])
def test_rules_are_as_many_as_asked_for_all_different_and_the_users_are_in_them(count: int) -> None:
    rules = rules_of(count)
    assert len(set(rules)) == count
    mine = [one.pattern.name for one in rules if one.rule.principal == f"User:{USER}"]
    assert mine == ["kafka-cluster", "alone", "alone", LOAD, LOAD]


def test_a_tenth_of_others_rules_are_about_the_topic_that_is_written() -> None:
    others = [one for one in rules_of(1_005) if one.rule.principal != f"User:{USER}"]
    assert sum(one.pattern.name == "alone" for one in others) == 100
    assert {one.pattern.resource for one in others} == {ResourceType.topic}


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.9, "reached"), (1.1, "reached"), (0.89, "missed"), (1.2, "missed")]
)
def test_a_rate_is_within_a_tenth_of_its_quota_or_not(share: float, verdict: str) -> None:
    row = quota_row("produce", {Sparklog.name: {"produce": share}, Kafka.name: {"produce": 0.5}}, QUICK)
    assert row.note == f"aim within a tenth of 1: {verdict}; Apache Kafka 0.5"
    assert (row.ours, row.kafka) == (share, None)
