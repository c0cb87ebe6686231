"""Subscriptions and assignments of consumers: bytes written down from Kafka's schemas by hand, and damage."""

import pytest

from sparklog.model.errors import WireError
from sparklog.model.ids import TopicPartition
from sparklog.wire.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

A0, A2, B1 = TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("bb", 1)

SUBSCRIPTION_BODY = (
    b"\x00\x00\x00\x02"  # topics
    b"\x00\x01a"
    b"\x00\x02bb"
    b"\x00\x00\x00\x01\x07"  # user data
)
OWNED = (
    b"\x00\x00\x00\x02"
    b"\x00\x01a"
    b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02"
    b"\x00\x02bb"
    b"\x00\x00\x00\x01\x00\x00\x00\x01"
)
GENERATION = b"\x00\x00\x00\x09"
RACK = b"\x00\x02r1"
SUBSCRIPTIONS = {
    0: (b"\x00\x00" + SUBSCRIPTION_BODY, Subscription(("a", "bb"), b"\x07")),
    1: (b"\x00\x01" + SUBSCRIPTION_BODY + OWNED, Subscription(("a", "bb"), b"\x07", (A0, A2, B1))),
    2: (
        b"\x00\x02" + SUBSCRIPTION_BODY + OWNED + GENERATION,
        Subscription(("a", "bb"), b"\x07", (A0, A2, B1), 9),
    ),
    3: (
        b"\x00\x03" + SUBSCRIPTION_BODY + OWNED + GENERATION + RACK,
        Subscription(("a", "bb"), b"\x07", (A0, A2, B1), 9, "r1"),
    ),
}
ASSIGNMENT_BODY = OWNED + b"\xff\xff\xff\xff"


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_a_subscription_is_read_and_written_in_every_version(version: int) -> None:
    data, subscription = SUBSCRIPTIONS[version]
    assert decode_subscription(data) == subscription
    assert encode_subscription(subscription, version) == data


def test_an_older_version_leaves_out_what_it_lacks() -> None:
    _, latest = SUBSCRIPTIONS[3]
    for version, (data, _) in SUBSCRIPTIONS.items():
        assert encode_subscription(latest, version) == data


def test_a_later_version_is_read_as_the_latest_known_one() -> None:
    data, subscription = SUBSCRIPTIONS[3]
    assert decode_subscription(b"\x00\x07" + data[2:] + b"more") == subscription


def test_an_empty_rack_is_none() -> None:
    assert decode_subscription(SUBSCRIPTIONS[3][0][:-4] + b"\x00\x00").rack is None


def test_topics_and_owned_partitions_are_written_in_order() -> None:
    unordered = Subscription(("bb", "a"), b"\x07", (B1, A2, A0), 9, "r1")
    assert encode_subscription(unordered) == SUBSCRIPTIONS[3][0]


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_read_and_written_in_every_version(version: int) -> None:
    data = version.to_bytes(2, "big") + ASSIGNMENT_BODY
    assert decode_assignment(data) == Assignment((A0, A2, B1))
    assert encode_assignment(Assignment((B1, A2, A0)), version) == data


def test_no_bytes_are_an_empty_assignment() -> None:
    assert decode_assignment(b"") == Assignment(())


@pytest.mark.parametrize("end", range(len(SUBSCRIPTIONS[3][0])))
def test_a_subscription_that_is_cut_short_is_malformed(end: int) -> None:
    with pytest.raises(WireError, match="malformed subscription"):
        decode_subscription(SUBSCRIPTIONS[3][0][:end])


@pytest.mark.parametrize("end", range(1, 2 + len(ASSIGNMENT_BODY)))
def test_an_assignment_that_is_cut_short_is_malformed(end: int) -> None:
    with pytest.raises(WireError, match="malformed assignment"):
        decode_assignment((b"\x00\x03" + ASSIGNMENT_BODY)[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff" + SUBSCRIPTION_BODY,
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe",
    ],
)
def test_a_hostile_subscription_is_malformed(data: bytes) -> None:
    with pytest.raises(WireError, match="malformed subscription"):
        decode_subscription(data)
