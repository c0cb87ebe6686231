"""What followers answer of their own logs, request by request; test_kafka_tools.py has the tools."""

import pytest

from tests.interop.differential.talk import Talk

pytestmark = [pytest.mark.clients, pytest.mark.integration]

NOT_LEADER_OR_FOLLOWER = 6
CONSUMER, DEBUGGER = -1, -2
LATEST = -1


@pytest.fixture
def followed(target, reference, topic) -> str:
    """A topic of one partition with three records, which all replicas have."""
    reference.produce(topic=topic, records=[{"partition": 0, "value": f"{n}"} for n in range(3)])
    target.wait_in_sync(topic)
    reference.read(topic=topic, partition=0, start="earliest", count=3)
    return topic


@pytest.fixture
def followers(target, followed):
    """The addresses of the two brokers that follow."""
    leader = target.leader(followed, 0)
    addresses = [address for broker, address in target.addresses().items() if broker != leader]
    assert len(addresses) == 2
    return addresses


@pytest.mark.parametrize("version", [0, 1, 4, 8], ids="version {}".format)
def test_list_offsets_for_one_replica(followed, followers, version):
    parts = [{"partition_index": 0, "timestamp": LATEST, "max_num_offsets": 1}]
    topics = [{"name": followed, "partitions": parts}]
    for address in followers:
        with Talk(address) as talk:
            answer = talk.ask("ListOffsets", version=version, replica_id=DEBUGGER, topics=topics)
            found = answer["topics"][0]["partitions"][0]
            assert (found["error_code"], found.get("offset", found.get("old_style_offsets"))) in (
                (0, 3),
                (0, [3]),
            )
            answer = talk.ask("ListOffsets", version=version, replica_id=CONSUMER, topics=topics)
            assert answer["topics"][0]["partitions"][0]["error_code"] == NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("version", "is_served"),
    [(10, False), (11, True), (12, True)],
    ids=["version 10 refused", "version 11", "version 12"],
)
@pytest.mark.parametrize("replica_id", [CONSUMER, DEBUGGER], ids="replica id {}".format)
def test_fetch_from_one_replica(followed, followers, version, is_served, replica_id):
    parts = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20, "last_fetched_epoch": -1}]
    fields = {"max_bytes": 1 << 20, "topics": [{"topic": followed, "partitions": parts}]}
    for address in followers:
        with Talk(address) as talk:
            answer = talk.ask("Fetch", version=version, replica_id=replica_id, **fields)
            found = answer["responses"][0]["partitions"][0]
            assert found["error_code"] == (0 if is_served else NOT_LEADER_OR_FOLLOWER)
            assert bool(found["records"]) == is_served
