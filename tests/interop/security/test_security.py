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


def test_tls_with_certificates_of_both_sides(connect, secured, topic_of):
    driver = connect(secured.certificate(ALICE), MUTUAL)
    writes_and_reads(driver, topic_of(ALICE))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_over_tls(connect, secured, topic_of, mechanism):
    driver = connect(secured.login(ALICE, mechanism))
    writes_and_reads(driver, topic_of(ALICE))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(connect, secured, client, mechanism):
    driver = connect(secured.login(ALICE, mechanism, "guessed"))
    with refused(client, "SASL_AUTHENTICATION_FAILED"):
        driver.topics()


def test_brokers_of_an_unknown_authority_are_refused(connect, secured, client):
    driver = connect(secured.of_another_authority(ALICE))
    with refused(client, "UNKNOWN_AUTHORITY"):
        driver.topics()


def test_a_producer_outlives_its_login(connect, secured, topic_of):
    """Logins last a second: whoever knows KIP-368 logs in anew, others connect again."""
    driver = connect(secured.login(ALICE), SHORT)
    records = [{"value": str(number)} for number in range(6)]
    sent = driver.produce(topic=topic_of(ALICE), records=records, pace_ms=400)
    assert sent == [[0, number] for number in range(6)]


# Rules


def test_rules_hide_topics_and_groups_of_others(connect, secured, topic_of):
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


@pytest.mark.parametrize("what", ["write", "read", "create", "delete"])
def test_rules_refuse_what_concerns_another_s_topic(connect, secured, client, topic_of, what):
    driver, topic = connect(secured.login(ALICE)), topic_of(ADMIN)
    with refused(client, "TOPIC_AUTHORIZATION_FAILED"):
        if what == "write":
            driver.produce(topic=topic, records=[{"value": "mine"}])
        elif what == "read":
            driver.read(topic=topic, partition=0, start=0, count=1, timeout_ms=5_000)
        elif what == "create":
            driver.create_topic(topic=f"{topic}-2", partitions=1)
        else:
            driver.delete_topic(topic=topic)


def test_rules_refuse_another_s_group(connect, secured, client):
    driver, group = connect(secured.login(ALICE)), new_group(ADMIN)
    with refused(client, "GROUP_AUTHORIZATION_FAILED"):
        driver.describe_group(group=group)


def test_rules_let_a_member_of_a_group_read_on(connect, secured, topic_of):
    driver, topic, group = connect(secured.login(ALICE)), topic_of(ALICE), new_group(ALICE)
    driver.produce(topic=topic, records=[{"value": "a"}])
    driver.join(member=group, group=group, topics=[topic], assignor="roundrobin")
    try:
        until(lambda: driver.state(member=group)["records"] == [[topic, 0, 0, "a"]])
    finally:
        driver.leave(member=group)


def test_rules_hold_transactional_ids(connect, secured, client, topic_of):
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


SIZES = [QUOTA_BYTES_PER_S * 4 // 5] * 5
"""Of the records: each fits into the quota of a window, and all of them into four."""


def test_quotas_slow_a_producer_down_and_lose_nothing(connect, secured, topic_of):
    """The burst of two windows is free, and the rest takes its time."""
    driver, topic, began = connect(secured.login(SLOW)), topic_of(SLOW), time.monotonic()
    records = [{"size": size} for size in SIZES]
    sent = driver.produce(topic=topic, records=records, pace_ms=50)
    assert sent == [[0, number] for number in range(len(SIZES))]
    assert time.monotonic() - began > 1.0


def test_quotas_slow_a_reader_down_and_lose_nothing(connect, secured, topic_of):
    driver, topic = connect(secured.login(ADMIN)), topic_of(SLOW)
    for number, size in enumerate(SIZES):  # each a batch of its own: larger ones would never fit
        assert driver.produce(topic=topic, records=[{"size": size}]) == [[0, number]]
    driver, began = connect(secured.login(SLOW)), time.monotonic()
    read = driver.read(topic=topic, partition=0, start=0, count=len(SIZES), timeout_ms=30_000)
    assert [record["size"] for record in read] == SIZES
    assert time.monotonic() - began > 1.0
