"""Throttled replication: what is held back, for whom, and for how long."""

import pytest

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.waiting.fetch_purgatory import FetchLimits
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs

RATE = 100
BATCH_BYTES = 81
TP = TopicPartition("quakes", 0)


def limit(member, side, replicas="0:1,0:2", rate=RATE):
    """Tell a broker its settings, as UpdateMetadata does."""
    own = DynamicConfigs({f"{side}.replication.throttled.rate": str(rate)})
    member.parts.roles.configure(own, [("quakes", {f"{side}.replication.throttled.replicas": replicas})])


def fetch(member, *, follower=2, wait_ms=0):
    """What a fetch gets, as soon as it is answered."""
    answers = []
    request = ReadRequest(0, 10_000, follower=None if follower is None else BrokerId(follower))
    limits = FetchLimits(wait_max_ms=wait_ms, bytes_min=1, bytes_max=100_000)
    wanted = [(TP, member.partition, request)]
    member.parts.waits.fetches.fetch(wanted, limits, lambda results: answers.append(results[TP]))
    return answers


def bytes_of(answers):
    return [result.size_bytes for result in answers]


@pytest.fixture
def leader(members, batch):
    """Broker 1, with more records than it may send in a second; broker 2 is not in sync."""
    members[1].become(1, 1, isr=(1,), min_isr=1)
    for _ in range(3):
        members[1].produce(batch(10))
    return members[1]


ALL = 3 * BATCH_BYTES


def test_a_replica_that_is_not_in_sync_gets_nothing_while_the_allowance_is_used_up(leader, clock):
    limit(leader, "leader")
    assert bytes_of(fetch(leader)) == [BATCH_BYTES]
    assert bytes_of(fetch(leader)) == [BATCH_BYTES]  # larger than the 19 bytes that were left
    (nothing,) = fetch(leader)
    assert (nothing.size_bytes, nothing.error) == (0, ErrorCode.none)
    assert nothing.high_watermark == leader.partition.high_watermark
    clock.now_ms += (2 * BATCH_BYTES - RATE) * 1_000 // RATE
    assert bytes_of(fetch(leader)) == [0]
    clock.now_ms += 10
    assert bytes_of(fetch(leader)) == [BATCH_BYTES]


def test_consumers_are_never_held_back(leader):
    limit(leader, "leader", rate=0)
    assert bytes_of(fetch(leader, follower=None)) == [ALL]


def test_replicas_in_sync_are_never_held_back_and_cost_nothing(members, batch):
    leader = members[1]
    leader.become(1, 1, isr=(1, 2), min_isr=1)
    leader.produce(batch(10), acks=1)
    limit(leader, "leader")
    assert bytes_of(fetch(leader)) == [BATCH_BYTES]
    assert leader.parts.throttles.leader.left() == RATE


@pytest.mark.parametrize("replicas", ["", "0:2", "1:1"])
def test_only_what_the_topic_names_of_this_broker_is_throttled(leader, replicas):
    limit(leader, "leader", replicas=replicas, rate=0)
    assert bytes_of(fetch(leader)) == [ALL]


def test_a_star_names_all(leader):
    limit(leader, "leader", replicas="*", rate=0)
    assert bytes_of(fetch(leader)) == [0]


def test_a_fetch_that_is_held_back_waits_and_has_records_once_there_is_an_allowance(leader, clock):
    limit(leader, "leader", rate=1)
    fetch(leader)
    answers = fetch(leader, wait_ms=500)
    assert answers == []
    clock.now_ms += 600_000
    leader.timer.fire()
    assert bytes_of(answers) == [BATCH_BYTES]


def test_records_that_come_meanwhile_wake_a_fetch_that_is_held_back_to_no_avail(leader, batch):
    limit(leader, "leader", rate=0)
    answers = fetch(leader, wait_ms=500)
    leader.produce(batch(10))
    assert answers == []
    leader.timer.fire()
    assert bytes_of(answers) == [0]


def test_settings_end_the_throttle_at_once(leader):
    limit(leader, "leader", rate=0)
    assert bytes_of(fetch(leader)) == [0]
    leader.parts.roles.configure(DynamicConfigs(), [("quakes", {})])
    assert bytes_of(fetch(leader)) == [ALL]


# -- followers


@pytest.fixture
def follower(leader, members):
    """Broker 2, which is not in sync: of each reply it takes one batch, and there are three."""
    members[2].become(1, 1, isr=(1,), min_isr=1)
    members[2].fetcher._followed._throttle = members[2].parts.throttles.follower
    members[2].fetcher._config = BrokerConfig.parse({"replica.fetch.max.bytes": "1"})
    return members[2]


def test_a_follower_that_lags_does_not_ask_until_its_debt_is_paid(follower, clock):
    limit(follower, "follower", rate=BATCH_BYTES - 1)
    assert follower.fetch_once() == 0
    assert follower.partition.log_end_offset == 10
    assert follower.fetch_once() > 0
    assert len(follower.requests) == 1
    clock.now_ms += 100
    follower.fetch_once()
    assert follower.partition.log_end_offset == 20


def test_a_follower_in_sync_asks_whatever_the_rate_is(follower):
    limit(follower, "follower", rate=10**6)
    for _ in range(3):
        follower.fetch_once()
    limit(follower, "follower", rate=0)
    for round_count in range(3):
        follower.fetch_once()
        assert len(follower.requests) == 4 + round_count


def test_what_the_topic_does_not_name_is_fetched_and_costs_nothing(follower):
    limit(follower, "follower", replicas="0:1", rate=1)
    for _ in range(3):
        follower.fetch_once()
    assert follower.partition.log_end_offset == 30
