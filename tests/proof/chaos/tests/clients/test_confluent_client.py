"""What a client of librdkafka writes down of requests that time out."""

import threading

import pytest
from tests.interop.holding_proxy import HoldingProxy
from tests.waiting import until

from chaos.access import Access
from chaos.clients import confluent_client
from chaos.clients.client_parts import Settings
from chaos.clients.confluent_client import log_of_time_outs
from histories import Writer, read_history
from sparklog.testing import InProcessCluster

WAITED_MS = 1_000


@pytest.mark.integration
def test_a_request_that_its_broker_does_not_answer_in_time_is_in_the_history(tmp_path, monkeypatch):
    monkeypatch.setattr(confluent_client, "SOCKET_TIMEOUT_MS", WAITED_MS)
    path = tmp_path / "history.jsonl"
    with InProcessCluster(brokers=1) as cluster, Writer(path) as writer:
        cluster.create_topic("t", partitions=1, replication_factor=1)
        (broker,), (address,) = cluster.brokers, cluster.bootstrap_servers.split(",")
        host, _, port = address.rpartition(":")
        with HoldingProxy({broker: (host, int(port))}) as proxy:
            access = Access(proxy.bootstrap_servers)
            settings = Settings("producer", "confluent", "p", access, {"t": 1}, "", 1)
            thread = threading.Thread(target=confluent_client.produce, args=(settings, writer))
            thread.start()
            try:
                until(lambda: '"type":"ok"' in path.read_text(), "an acknowledged record")
                proxy.hold_the_next_produce(broker)
                until(lambda: '"f":"timed_out"' in path.read_text(), "a request that timed out")
            finally:
                settings.is_stopping = True
                thread.join()
    (found, *_) = read_history(path).timed_out
    assert found.session == "p#0"
    assert found.waited_ns >= WAITED_MS * 1_000_000


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        ("Timed out ProduceRequest in flight (after 10954ms, timeout #0)", [10_954]),
        ("Timed out ProduceRequest in output queue (after 10954ms, timeout #0)", []),
        ("Timed out MetadataRequest in flight (after 10954ms, timeout #0)", []),
        ("Timed out 1 in-flight, 0 retry-queued, 1 out-queue, 0 partially-sent requests", []),
    ],
)
def test_only_a_produce_without_an_answer_is_a_time_out(words, noted):
    found = []
    logger = log_of_time_outs(found.append)["logger"]
    logger.info("%s [%s] %s", "REQTMOUT", "rdkafka#producer-1", f"[thrd:broker:9092/1]: {words}")
    assert found == noted
