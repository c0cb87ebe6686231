"""What ZooKeeper holds of applications and of brokers that have registered."""

from dataclasses import replace

import pytest

from sparklog.core.controller.state.applications import (
    REASON_CHARACTERS_MAX,
    WARNINGS_MAX,
    Application,
    HostedBroker,
    KnownBroker,
    application_path,
    decode_application,
    decode_known,
    encode_application,
    encode_known,
    host_of,
)
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId

ONE = BrokerId(1)


def application(name="shop", *brokers):
    return Application(name, "node-1", 9091, 4690, "0.1.0", "http://node-1:9480/", brokers)


def test_an_application_is_read_as_it_was_written():
    written = application("node-1:/tmp/a b/ü", HostedBroker(ONE, "away", "no executor", 1_000, 3))
    path = application_path(written.name)
    assert path.count("/") == 2
    assert decode_application(path.rpartition("/")[2], encode_application(written)) == written


def test_long_reasons_are_cut():
    written = application("shop", HostedBroker(ONE, "away", "x" * 10_000))
    (read,) = decode_application("shop", encode_application(written)).brokers
    assert read.reason == "x" * REASON_CHARACTERS_MAX


def test_warnings_about_spark_are_read_as_they_were_written_and_bounded():
    written = replace(application(), spark_warnings=("spark.task.maxFailures=4: set 1", "another"))
    assert decode_application("shop", encode_application(written)) == written
    many = replace(application(), spark_warnings=("x" * 10_000,) * 1_000)
    read = decode_application("shop", encode_application(many)).spark_warnings
    assert read == ("x" * REASON_CHARACTERS_MAX,) * WARNINGS_MAX


@pytest.mark.parametrize(
    "data",
    [
        *(b"{", b"[]", b"{}", b'{"host":"h","port":"x"}'),
        b'{"host":"h","port":1,"pid":1,"release":"","brokers":[1]}',
    ],
)
def test_what_is_no_application_is_refused_with_its_path(data):
    with pytest.raises(SparklogError, match="/applications/shop"):
        decode_application("shop", data)


def test_a_known_broker_is_read_as_it_was_written():
    known = KnownBroker("node-4", "shop", "0.1.0", version=7)
    assert decode_known(ONE, encode_known(known), 7) == known
    with pytest.raises(SparklogError, match="/brokers/known/1"):
        decode_known(ONE, b"{}", 0)


def test_of_two_applications_that_claim_a_broker_the_one_counts_that_serves_it():
    late = application("late", HostedBroker(ONE, "starting"))
    serving = application("serving", HostedBroker(ONE, "serving"))
    assert host_of((late, serving), ONE) is serving
    assert host_of((late,), ONE) is late
    assert host_of((late, serving), BrokerId(2)) is None
