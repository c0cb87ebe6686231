"""The proxy sees what would make a request late: its judgement of clients rests on that."""

import pytest
from confluent_kafka import Producer

from sparklog.testing import InProcessCluster
from tests.interop.recording_proxy import END, RecordingProxy, Request, in_turns


@pytest.mark.parametrize(
    ("connections", "late"), [((1, 1, 2, 3, 3), []), ((1, 2, 1, 2), [(2, 1)]), ((3, 2, 1), [(3, 2), (3, 1)])]
)
def test_a_request_over_an_older_connection_than_the_one_before_is_found(connections, late):
    requests = [Request(1, (END, 7), 0, number) for number in connections]
    assert [(before.connection, one.connection) for before, one in in_turns(requests)] == late


def test_requests_of_another_kind_epoch_or_broker_are_no_turns():
    one = Request(1, (END, 7), 0, 2)
    others = [
        Request(1, (END, 8), 0, 1),
        Request(1, (END, 7), 1, 1),
        Request(2, (END, 7), 0, 1),
    ]
    assert in_turns([one, *others]) == []


@pytest.mark.integration
def test_requests_are_recorded_and_a_lost_one_comes_over_another_connection():
    with InProcessCluster(brokers=1) as cluster:
        cluster.create_topic("t")
        addresses = {one: (server.node.host, server.node.port) for one, server in cluster.brokers.items()}
        with RecordingProxy(
            addresses, lambda api, number: "request is lost" if (api, number) == (END, 1) else "arrives"
        ) as proxy:
            settings = {"bootstrap.servers": proxy.bootstrap_servers, "log_level": 0}
            producer = Producer({**settings, "transactional.id": "x"})
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce("t", b"value")
            producer.commit_transaction(30)
        assert [record.value for record in cluster.consume("t", at_least=1)] == [b"value"]
    lost, again = [one for one in proxy.requests if one.kind[0] == END]
    assert (lost.kind, lost.producer_epoch) == (again.kind, again.producer_epoch)
    assert lost.connection < again.connection
