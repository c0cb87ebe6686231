"""ZooKeeper goes away and comes back: brokers serve meanwhile, and go on as if nothing had been."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]


def test_a_zookeeper_goes_away_and_comes_back(
    tmp_path: Path, case: Case, kept: Any, refused: Refused
) -> None:
    with InProcessCluster(tmp_path, zookeeper="real") as cluster:
        acknowledged = kept(cluster)
        acknowledged.check()
        zookeeper = cluster._embedded  # nobody else has a reason to stop it
        assert zookeeper is not None
        zookeeper.kill()
        for _ in range(3):
            acknowledged.check()
        impatient = ClusterClient(cluster.bootstrap_servers, request_timeout_ms=300, retry_timeout_ms=300)
        with impatient:
            seen = refused(lambda: Admin(impatient).create_topics([NewTopic(name="new", partitions=1)]))
        # Which question a broker was too slow for is a matter of luck.
        seen = re.sub(
            r"answered \w+ request \d+ in time", "answered CreateTopics request 1 in time", str(seen)
        )
        case(
            "a topic is created while ZooKeeper is away",
            "sparklog's client",
            seen,
            "bring ZooKeeper back; reads and writes go on, of new producers too",
            dict(zip(cluster.bootstrap_servers.split(","), SERVERS, strict=True)),
        )
        zookeeper.start()
        create_as_advised(cluster, "newer")
        acknowledged.check()
        victim = cluster.wait_for_leader("kept")
        cluster.kill(victim)
        assert cluster.wait_for_leader("kept", other_than=victim) != victim
        acknowledged.check()


def create_as_advised(cluster: InProcessCluster, topic: str) -> None:
    """Create the topic; try again where the error advises it.

    While ZooKeeper loads, it may accept a session's connection and never answer. The controller's session
    then expires, and the request that waits for that controller is answered with REQUEST_TIMED_OUT.
    """

    def is_created() -> bool:
        try:
            cluster.create_topic(topic)
        except KafkaError as error:
            if error.code is ErrorCode.topic_already_exists:
                return True  # by a try whose answer was lost
            if error.code is not ErrorCode.request_timed_out or "try again" not in str(error):
                raise
            return False
        return True

    until(is_created, f"the creation of {topic}", timeout_s=120)


SERVERS = ("127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094")
