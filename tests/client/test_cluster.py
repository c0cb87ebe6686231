"""A client finds whoever can answer, tries again when told wrong, and gives up with a clear error."""

import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sparklog.client import offsets
from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.errors import ClientClosed, ClusterUnavailable
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
TP = TopicPartition("t", 0)


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class ManualClock:
    """Stands still until a test moves it, or moves it on at each reading."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.step_ms = 0

    def monotonic_ms(self) -> MonotonicMs:
        self.now_ms += self.step_ms
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


def a_request(_leaders: object) -> ListOffsetsRequest:
    return ListOffsetsRequest(replica_id=-1, topics=[])


def latest_of(client: ClusterClient, tp: TopicPartition) -> int:
    return offsets.latest(client, [tp], IsolationLevel.READ_UNCOMMITTED)[tp]


def test_metadata_names_brokers_topics_and_leaders(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(2)
    fake.create_topic("t", 3)
    seen = client_of(fake).metadata(["t"])
    assert sorted(seen.brokers) == [1, 2]
    assert seen.cluster_id == "fake-cluster"
    assert [seen.topics["t"].partitions[number].leader for number in range(3)] == [1, 2, 1]


def test_known_metadata_is_not_asked_for_again_until_it_is_old(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("t")
    client = client_of(fake)
    client.metadata(["t"])
    client.metadata(["t"])
    assert fake.count(MetadataRequest) == 1
    client.metadata(["t"], max_age_ms=0)
    assert fake.count(MetadataRequest) == 2


def test_a_broker_that_is_gone_is_passed_over(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(2)
    client = client_of(fake)
    client.metadata([])
    fake.stop_broker(1)
    assert sorted(client.metadata([], max_age_ms=0).brokers) == [2]


def test_brokers_that_fall_silent_leave_their_last_refusal(start_fake: Start, client_of: Connect) -> None:
    fake, clock = start_fake(), ManualClock()
    client = client_of(fake, retry_timeout_ms=60_000, clock=clock)

    def refused(_answer: object) -> ErrorCode:
        fake.cut_after["DescribeCluster"] = 1_000_000
        clock.step_ms = 5_000
        return ErrorCode.coordinator_not_available

    assert client.call_any(DescribeClusterRequest(), refused).cluster_id == "fake-cluster"
    assert fake.count(DescribeClusterRequest) > 1


def test_when_nobody_answers_the_error_names_the_servers_and_the_reason() -> None:
    servers = f"127.0.0.1:{closed_port()}"
    with (
        ClusterClient(servers, retry_timeout_ms=150) as client,
        pytest.raises(ClusterUnavailable, match=rf"no broker of {servers} .* 150 ms .*refused"),
    ):
        client.metadata()


def test_a_silent_broker_does_not_use_up_the_time_of_the_others(start_fake: Start) -> None:
    fake = start_fake()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]},{fake.bootstrap_servers}"
        with ClusterClient(servers) as client:
            client.reach(2_000)
            assert sorted(client.latest_metadata.brokers) == [1]


def test_a_peer_that_accepts_and_never_answers_does_not_hang_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        client = ClusterClient(servers, request_timeout_ms=100, retry_timeout_ms=200)
        with client, pytest.raises(ClusterUnavailable, match=servers):
            client.metadata()


@pytest.mark.parametrize(
    ("servers", "complaint"),
    [
        ("", "at least one"),
        ("localhost", "not host:port"),
        ("localhost:x", "not a port"),
        ("h:70000", "not a port"),
        ("::1:9092", r"brackets, as in \[::1\]:9092"),
        ("[::1]", "not host:port"),
        ("[]:9092", "not host:port"),
        ("[h:9092", "not host:port"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_by_name(servers: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ClusterClient(servers)


def test_an_unknown_topic_is_an_error_that_names_it(start_fake: Start, client_of: Connect) -> None:
    client = client_of(start_fake())
    with pytest.raises(KafkaError, match="there is no topic 'nowhere'"):
        client.topic("nowhere", timeout_ms=50)


def test_a_topic_that_the_broker_learns_of_a_moment_later_is_waited_for(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.hidden_topics.add("t")
    assert list(client_of(fake).topic("t").partitions) == [0]


def test_a_call_follows_the_leader(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(2)
    fake.create_topic("t")
    client = client_of(fake)
    assert latest_of(client, TP) == 0
    fake.lead("t", 0, 1 if fake.log("t").leader == 2 else 2)
    assert latest_of(client, TP) == 0


def test_a_call_outlives_a_lost_connection_and_a_passing_error(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.cut_after["ListOffsets"] = 2
    fake.refusals[TP].append(ErrorCode.leader_not_available)
    assert latest_of(client_of(fake), TP) == 0


def test_an_error_that_trying_again_cannot_mend_is_raised_at_once(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.refusals[TP].append(ErrorCode.topic_authorization_failed)
    with pytest.raises(KafkaError, match="t-0") as refused:
        latest_of(client_of(fake), TP)
    assert refused.value.code is ErrorCode.topic_authorization_failed


def test_an_obstacle_that_stays_is_named_when_the_time_is_up(start_fake: Start, client_of: Connect) -> None:
    fake, clock = start_fake(), ManualClock()
    fake.create_topic("t")
    client = client_of(fake, retry_timeout_ms=60_000, clock=clock)
    answers = 0

    def refuse(_response: object) -> Mapping[TopicPartition, Answer[int]]:
        nonlocal answers
        answers += 1
        clock.now_ms = 60_000 if answers == 3 else 0
        return {TP: (ErrorCode.leader_not_available, None)}

    with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE: t-0 for 60000 ms"):
        client.call_leaders([TP], a_request, refuse)
    assert answers == 3


def test_brokers_that_fall_silent_leave_a_leader_s_refusal(start_fake: Start, client_of: Connect) -> None:
    fake, clock = start_fake(), ManualClock()
    fake.create_topic("t")
    client = client_of(fake, retry_timeout_ms=60_000, clock=clock)

    def refuse_and_fall_silent(_response: object) -> Mapping[TopicPartition, Answer[int]]:
        fake.stop_broker(1)
        clock.step_ms = 25_000
        return {TP: (ErrorCode.leader_not_available, None)}

    with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE: t-0 for 60000 ms"):
        client.call_leaders([TP], a_request, refuse_and_fall_silent)


def test_brokers_that_fall_silent_without_a_refusal_are_unavailable(
    start_fake: Start, client_of: Connect
) -> None:
    fake = start_fake()
    fake.create_topic("t")
    client = client_of(fake, retry_timeout_ms=300)
    client.metadata(["t"])
    fake.stop_broker(1)
    with pytest.raises(ClusterUnavailable, match="within 300 ms"):
        latest_of(client, TP)


def test_partitions_of_many_leaders_are_asked_together(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake(3)
    fake.create_topic("t", 6)
    client = client_of(fake)
    tps = [TopicPartition("t", number) for number in range(6)]
    assert offsets.earliest(client, tps) == dict.fromkeys(tps, 0)


def test_closing_the_client_ends_a_wait_in_another_thread(start_fake: Start, client_of: Connect) -> None:
    fake = start_fake()
    fake.create_topic("t")
    fake.refusals[TP].extend([ErrorCode.leader_not_available] * 1_000)
    client = client_of(fake, retry_timeout_ms=60_000)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            latest_of(client, TP)
        except ClientClosed as error:
            ended.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    client.close()
    waiter.join(10)
    assert len(ended) == 1


def test_a_closed_client_says_so(start_fake: Start, client_of: Connect) -> None:
    client = client_of(start_fake())
    client.close()
    with pytest.raises(ClientClosed):
        client.metadata()
