"""The report of a cluster, from brokers and from the controller itself."""

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from sparklog.cli.main import main
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster_reports import report_of_brokers, report_of_controller
from sparklog.network.dialing.connector import IN_THE_CLEAR
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse
from tests.waiting import until

ALL = ClusterReportRequest(events_max=1_000)
TOPIC = "reported-topic"


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=12)
        yield cluster


def report(cluster: InProcessCluster, request: ClusterReportRequest = ALL) -> ClusterReportResponse:
    return report_of_brokers(cluster.client, request, timeout_ms=10_000)


def words(found: ClusterReportResponse) -> list[str]:
    return [event.words for event in found.events]


def test_a_broker_reports_what_the_controller_knows(cluster: InProcessCluster) -> None:
    until(
        lambda: (
            f"topic {TOPIC} is created with 12 partitions and replication factor 3" in words(report(cluster))
        )
    )
    found = report(cluster)
    assert [broker.broker_id for broker in found.brokers] == [1, 2, 3]
    assert {broker.state for broker in found.brokers} == {"serving"}
    assert sum(broker.leaders for broker in found.brokers) == found.partitions == 12
    assert (found.leaderless, found.under_replicated) == (0, 0)
    assert [event.number for event in found.events] == list(range(1, len(found.events) + 1))


def test_the_controller_answers_when_no_broker_does() -> None:
    with InProcessCluster(brokers=1) as cluster:
        assert cluster.controller is not None
        endpoint = Endpoint("127.0.0.1", cluster.controller.port)
        cluster.kill(1)
        found = until(lambda: asked(endpoint, lambda one: one.brokers[0].state == "away"))
        assert found.age_ms == 0
        assert any("broker 1" in line for line in words(found))


def asked(
    endpoint: Endpoint, is_wanted: Callable[[ClusterReportResponse], bool]
) -> ClusterReportResponse | None:
    found = report_of_controller(IN_THE_CLEAR, endpoint, ALL, client_id="a-test")
    return found if is_wanted(found) else None


def test_a_hundred_followers_see_every_event_once(cluster: InProcessCluster) -> None:
    first = report(cluster)
    seen: list[list[int]] = [[] for _ in range(100)]
    done = threading.Event()

    def follow(numbers: list[int]) -> None:
        number = first.last_number
        while not done.is_set():
            request = ClusterReportRequest(after_term=first.term, after_number=number, events_max=1_000)
            for event in report(cluster, request).events:
                number = event.number
                numbers.append(number)
            done.wait(0.2)

    threads = [threading.Thread(target=follow, args=(numbers,)) for numbers in seen]
    for thread in threads:
        thread.start()
    for number in range(5):
        cluster.create_topic(f"followed-topic-{number}")
    expected = list(range(first.last_number + 1, first.last_number + 6))
    try:
        until(lambda: all(numbers == expected for numbers in seen))
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_the_command_prints_events_as_objects(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["events", "--json", "--kind", "topic", "--bootstrap-server", cluster.bootstrap_servers]
    assert main(arguments) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert TOPIC in {line["subject"] for line in lines}
    assert {line["kind"] for line in lines} == {"topic"}


def test_status_names_a_broker_that_is_away_and_the_controller(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with InProcessCluster(brokers=3) as cluster:
        cluster.kill(2)
        until(lambda: [one.state for one in report(cluster).brokers] == ["serving", "away", "serving"])
        capsys.readouterr()
        assert main(["status", "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        status = json.loads(capsys.readouterr().out)
        away = status["brokers"][1]
        assert (away["broker_id"], away["alive"], away["state"]) == (2, False, "away")
        assert away["reason"].startswith("no application runs it")
        (controller,) = status["controllers"]
        assert (controller["application"], controller["active"]) == ("sparklog-testing", True)
        assert main(["status", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        assert "broker 2, away: no application runs it" in capsys.readouterr().out
