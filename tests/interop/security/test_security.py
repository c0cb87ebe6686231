"""Clients on a secured cluster: how they log in, what rules let them do, how quotas hold them."""

import itertools
import time

import pytest

from tests.interop.refusals import refused
from tests.interop.security.secured import (
    ADMIN,
    ALICE,
    MECHANISMS,
    MUTUAL,
    QUOTA_BYTES_PER_S,
    SHORT,
    SLOW,
)
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]

_numbers = itertools.count(1)


@pytest.fixture
def topic_of(secured):
    """Makes a topic with one partition, whose name begins with its user's."""

    def make(user):
        name = f"{user}-topic-{next(_numbers)}"
        secured.cluster.create_topic(name, replication_factor=3)
        return name

    return make


def writes_and_reads(driver, topic):
    assert driver.produce(topic=topic, records=[{"value": "a"}, {"value": "b"}]) == [[0, 0], [0, 1]]
    read = driver.read(topic=topic, partition=0, start=0, count=2)
    assert [record["value"] for record in read] == ["a", "b"]
    assert driver.topics()[topic] == 1


def new_group(user):
    return f"{user}-group-{next(_numbers)}"


# Logins


def test_mutual_tls(connect, secured, topic_of):
    """TLS with certificates of both sides, and no other login."""
    driver = connect(secured.certificate(ALICE), MUTUAL)
    writes_and_reads(driver, topic_of(ALICE))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login(connect, secured, topic_of, mechanism):
    driver = connect(secured.login(ALICE, mechanism))
    writes_and_reads(driver, topic_of(ALICE))


def test_wrong_password(connect, secured, client):
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        driver = connect(secured.login(ALICE, mechanism, "guessed"))
        with refused(client, "SASL_AUTHENTICATION_FAILED"):
            driver.topics()


def test_unknown_authority(connect, secured, client):
    driver = connect(secured.of_another_authority(ALICE))
    with refused(client, "UNKNOWN_AUTHORITY"):
        driver.topics()


def test_short_logins(connect, secured, topic_of):
    """Logins last a second: whoever knows KIP-368 logs in anew, others connect again."""
    driver = connect(secured.login(ALICE), SHORT)
    records = [{"value": str(number)} for number in range(6)]
    sent = driver.produce(topic=topic_of(ALICE), records=records, pace_ms=400)
    assert sent == [[0, number] for number in range(6)]


# Rules


def test_rules_of_lists(connect, secured, topic_of):
    """Topics and groups of others are in no list."""
    hidden, mine, group = topic_of(ADMIN), topic_of(ALICE), new_group(ADMIN)
    secured.commit(group, hidden)
    admin = connect(secured.login(ADMIN))
    assert {hidden, mine} <= set(admin.topics())
    assert group in admin.groups()
    driver = connect(secured.login(ALICE))
    seen = set(driver.topics())
    assert mine in seen
    assert {name for name in seen if not name.startswith(ALICE)} == set()
    assert group not in driver.groups()


@pytest.mark.parametrize("what", ["write", "read", "administer"])
def test_rules_of_topics(connect, secured, client, topic_of, what):
    """Whoever has no right on a topic is refused, and is told why."""
    driver, topic = connect(secured.login(ALICE)), topic_of(ADMIN)
    with refused(client, "TOPIC_AUTHORIZATION_FAILED"):
        if what == "write":
            driver.produce(topic=topic, records=[{"value": "mine"}])
        elif what == "read":
            driver.read(topic=topic, partition=0, start=0, count=1, timeout_ms=5_000)
        else:
            driver.create_topic(topic=f"{topic}-2", partitions=1)
    if what == "administer":
        with refused(client, "TOPIC_AUTHORIZATION_FAILED"):
            driver.delete_topic(topic=topic)


def test_rules_of_groups(connect, secured, client):
    driver, group = connect(secured.login(ALICE)), new_group(ADMIN)
    with refused(client, "GROUP_AUTHORIZATION_FAILED"):
        driver.describe_group(group=group)


def test_rules_of_members(connect, secured, topic_of):
    """A member reads on in a group that is its user's."""
    driver, topic, group = connect(secured.login(ALICE)), topic_of(ALICE), new_group(ALICE)
    driver.produce(topic=topic, records=[{"value": "a"}])
    driver.join(member=group, group=group, topics=[topic], assignor="roundrobin")
    try:
        until(lambda: driver.state(member=group)["records"] == [[topic, 0, 0, "a"]])
    finally:
        driver.leave(member=group)


def test_rules_of_transactions(connect, secured, client, topic_of):
    """A user's own transactional id serves, and another's does not."""
    driver, topic = connect(secured.login(ALICE)), topic_of(ALICE)
    mine = f"{ALICE}-id-{next(_numbers)}"
    driver.txn_init(producer=mine, transactional_id=mine)
    driver.txn_begin(producer=mine)
    driver.txn_send(producer=mine, topic=topic, records=[{"value": "a", "partition": 0}])
    driver.txn_end(producer=mine, commit=True)
    driver.txn_close(producer=mine)
    read = driver.read(topic=topic, partition=0, start=0, count=1, committed=True)
    assert [record["value"] for record in read] == ["a"]
    with refused(client, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        driver.txn_init(producer="stolen", transactional_id=f"{ADMIN}-id-{next(_numbers)}")


# Quotas


SIZES = [QUOTA_BYTES_PER_S * 4 // 5] * 4
"""Of the records: each fits into the quota of a window, and all of them into no three."""


def test_quotas_of_producers(connect, secured, topic_of):
    """Whoever has used the burst of two windows is held back: its next request is, if all was in one."""
    driver, topic, began = connect(secured.login(SLOW)), topic_of(SLOW), time.monotonic()
    records = [{"size": size} for size in SIZES]
    sent = driver.produce(topic=topic, records=records, pace_ms=50)
    delay_ms, took_s = secured.delay_ms(SLOW, "producer_byte_rate"), time.monotonic() - began
    assert sent == [[0, number] for number in range(len(SIZES))]
    assert took_s > 1.0 or delay_ms > 0, took_s


def test_quotas_of_readers(connect, secured, topic_of):
    driver, topic = connect(secured.login(ADMIN)), topic_of(SLOW)
    for number, size in enumerate(SIZES):  # each a batch of its own: larger ones would never fit
        assert driver.produce(topic=topic, records=[{"size": size}]) == [[0, number]]
    driver, began = connect(secured.login(SLOW)), time.monotonic()
    read = driver.read(topic=topic, partition=0, start=0, count=len(SIZES), timeout_ms=30_000)
    assert [record["size"] for record in read] == SIZES
    assert time.monotonic() - began > 1.0
