"""Spark's own Kafka connector, release 4.2, on a secured cluster: SASL_SSL with SCRAM, and rules."""

import pytest

from tests.interop.security.secured import ALICE, java_properties
from tests.interop.test_spark_connector import run_job

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(300)]

API_TIMEOUT_S = 60
"""After which Kafka's clients give up what they try again."""


def test_a_job_that_may_not_is_not_tried_again_until_clients_give_up(secured, tmp_path):
    """Spark itself reads offsets three times, a second apart."""
    options = {f"kafka.{name}": value for name, value in java_properties(secured.login(ALICE)).items()}
    topic = "of-nobody"
    secured.cluster.create_topic(topic, partitions=2, replication_factor=3)
    found = run_job("denied", secured.servers(), [topic, topic], tmp_path, options)
    assert found.keys() == {"write", "read"}
    for ended in found.values():
        assert "TopicAuthorizationException" in ended["error"]
        assert ended["seconds"] < API_TIMEOUT_S


def test_spark_streams_as_a_user_who_logs_in_by_scram_over_tls(secured, tmp_path):
    options = {f"kafka.{name}": value for name, value in java_properties(secured.login(ALICE)).items()}
    topics = [f"{ALICE}-spark-{name}" for name in ("from", "to")]
    for topic in topics:
        secured.cluster.create_topic(topic, partitions=2, replication_factor=3)
    assert run_job("stream", secured.servers(), topics, tmp_path, options)["counts"] == [50, 100]
